#include "commands.hpp"
#include "terminal.hpp"

#include <brontes/device.hpp>

#include <cstdio>
#include <iostream>

namespace tool {
namespace {

void print(const brontes::DeviceInfo& d, bool chosen) {
  std::printf("%s %u: %s\n", chosen ? "*" : " ", d.index, bold(d.name).c_str());
  std::printf("     type      %s\n", brontes::to_string(d.type));
  // Devices below Vulkan 1.2 do not say.
  if (!d.driver.empty()) std::printf("     driver    %s\n", d.driver.c_str());
  std::printf("     Vulkan    %s\n", api_version(d).c_str());
  std::printf("     UUID      %s\n", uuid_text(d).c_str());
  std::printf("     suitable  %s\n", d.suitable ? "yes" : ("no: " + d.unsuitable_because).c_str());
}

void write_json(const std::vector<brontes::DeviceInfo>& list, const brontes::Result<brontes::Device>& chosen) {
  Json json(std::cout);
  json.begin(nullptr, '[');
  for (const brontes::DeviceInfo& d : list) {
    json.begin(nullptr, '{');
    put_device(json, d);
    json.put("used", chosen.has_value() && chosen->info().index == d.index);
    json.end('}');
  }
  json.end(']');
  std::cout << '\n';
}

}  // namespace

const char* const devices_help =
    "Usage: brontes devices [--device WHICH] [--json]\n"
    "\n"
    "Lists every Vulkan device: index, name, type, driver, Vulkan version, UUID, and whether Brontes can\n"
    "use it, or why not. An asterisk marks the one a program would get.\n"
    "\n"
    "  --device WHICH  as if this device had been asked for: an index, a part of the name, or a UUID.\n"
    "                  Without it BRONTES_DEVICE counts, and then the best device.\n"
    "  --json          the same as JSON\n";

int devices(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {"--device"}, 0});
  if (!parsed.problem.empty()) return report_misuse("devices", parsed.problem);

  const auto list = brontes::Device::list();
  if (!list) return report(list.error());

  brontes::DeviceOptions options;
  options.select = parsed.option("--device");
  options.pipeline_cache.enabled = false;
  const auto chosen = brontes::Device::open(options);
  if (parsed.flag("--json")) {
    write_json(*list, chosen);
    return chosen ? success : report(chosen.error());
  }
  for (const brontes::DeviceInfo& d : *list) print(d, chosen.has_value() && chosen->info().index == d.index);
  if (!chosen) return report(chosen.error());
  std::printf("\n* is used%s.\n", chosen->info().type == brontes::DeviceType::cpu ? ", a CPU driver: no GPU" : "");
  return success;
}

}  // namespace tool
