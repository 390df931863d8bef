#include "commands.hpp"
#include "terminal.hpp"
#include "util/hex.hpp"

#include <brontes/device.hpp>

#include <array>
#include <cstdint>
#include <cstdio>

namespace tool {
namespace {

std::string uuid_text(const std::array<std::uint8_t, 16>& uuid) {
  std::string text = brontes::util::hex(uuid);
  for (const std::size_t at : {20u, 16u, 12u, 8u}) text.insert(at, "-");
  return text;
}

void print(const brontes::DeviceInfo& d, bool chosen) {
  std::printf("%s %u: %s\n", chosen ? "*" : " ", d.index, bold(d.name).c_str());
  std::printf("     type      %s\n", brontes::to_string(d.type));
  // Devices below Vulkan 1.2 do not say.
  if (!d.driver.empty()) std::printf("     driver    %s\n", d.driver.c_str());
  std::printf("     Vulkan    %s\n", api_version(d).c_str());
  std::printf("     UUID      %s\n", uuid_text(d.uuid).c_str());
  std::printf("     suitable  %s\n", d.suitable ? "yes" : ("no: " + d.unsuitable_because).c_str());
}

}  // namespace

const char* const devices_help =
    "Usage: brontes devices [--device WHICH]\n"
    "\n"
    "Lists every Vulkan device: index, name, type, driver, Vulkan version, UUID, and whether Brontes can\n"
    "use it, or why not. An asterisk marks the one a program would get.\n"
    "\n"
    "  --device WHICH  as if this device had been asked for: an index, a part of the name, or a UUID.\n"
    "                  Without it BRONTES_DEVICE counts, and then the best device.\n";

int devices(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{}, {"--device"}, 0});
  if (!parsed.problem.empty()) return report_misuse("devices", parsed.problem);

  const auto list = brontes::Device::list();
  if (!list) return report(list.error());

  brontes::DeviceOptions options;
  options.select = parsed.option("--device");
  options.pipeline_cache.enabled = false;
  const auto chosen = brontes::Device::open(options);
  for (const brontes::DeviceInfo& d : *list) print(d, chosen.has_value() && chosen->info().index == d.index);
  if (!chosen) return report(chosen.error());
  std::printf("\n* is used%s.\n", chosen->info().type == brontes::DeviceType::cpu ? ", a CPU driver: no GPU" : "");
  return success;
}

}  // namespace tool
