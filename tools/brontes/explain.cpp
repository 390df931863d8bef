#include "commands.hpp"
#include "terminal.hpp"

#include <brontes/device.hpp>
#include <brontes/matmul.hpp>

#include <cstdio>
#include <iostream>

namespace tool {
const char* const explain_help =
    "Usage: brontes explain M K N [--layout kn|nk] [--device WHICH] [--json]\n"
    "\n"
    "Says which kernel multiplies an [M, K] matrix by a [K, N] one on this device, and why.\n"
    "\n"
    "  --layout kn     the second matrix is stored as [K, N] (the default)\n"
    "  --layout nk     it is stored as [N, K] and used transposed, like the weights of a linear layer\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n"
    "  --json          the same as JSON\n";

int explain(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {"--layout", "--device"}, 3});
  if (!parsed.problem.empty()) return report_misuse("explain", parsed.problem);
  std::uint64_t sizes[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto number = parse_number(parsed.positional[i]);
    if (!number) return report_misuse("explain", "\"" + parsed.positional[i] + "\" is not a size");
    sizes[i] = *number;
  }
  const auto [m, k, n] = sizes;
  brontes::MatmulOptions options;
  const std::string layout = parsed.option("--layout");
  if (layout == "nk") {
    options.layout = brontes::Layout::nk;
  } else if (!layout.empty() && layout != "kn") {
    return report_misuse("explain", "--layout is kn or nk, not \"" + layout + "\"");
  }

  brontes::DeviceOptions device_options;
  device_options.select = parsed.option("--device");
  device_options.pipeline_cache.enabled = false;
  const auto device = brontes::Device::open(device_options);
  if (!device) return report(device.error());

  const brontes::MatmulChoice choice = brontes::explain_matmul(*device, m, k, n, options);
  const bool none = choice.kernel == brontes::MatmulKernel::automatic;
  if (parsed.flag("--json")) {
    Json json(std::cout);
    json.begin(nullptr, '{');
    json.put("m", m);
    json.put("k", k);
    json.put("n", n);
    json.put("layout", brontes::to_string(options.layout));
    json.put("device", device->info().name);
    json.put("kernel", none ? "none" : brontes::to_string(choice.kernel));
    json.put("because", choice.reason);
    json.put("dispatches", choice.dispatches);
    json.put("groups", choice.groups);
    json.end('}');
    std::cout << '\n';
    return success;
  }
  auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::printf("product     [%s, %s] x [%s, %s], second matrix stored as %s\n", number(m).c_str(), number(k).c_str(),
              number(k).c_str(), number(n).c_str(), options.layout == brontes::Layout::nk ? "[N, K]" : "[K, N]");
  std::printf("device      %s (%s)\n", device->info().name.c_str(), brontes::to_string(device->info().type));
  std::printf("kernel      %s\n", bold(none ? "none" : brontes::to_string(choice.kernel)).c_str());
  std::printf("because     %s\n", choice.reason.c_str());
  std::printf("dispatches  %u\n", choice.dispatches);
  std::printf("workgroups  %s per dispatch\n", number(choice.groups).c_str());
  return success;
}

}  // namespace tool
