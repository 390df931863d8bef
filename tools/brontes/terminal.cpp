#include "terminal.hpp"

#include "commands.hpp"
#include "util/hex.hpp"

#include <cstdio>
#include <cstdlib>

#if defined(_WIN32)
#  include <io.h>
#else
#  include <unistd.h>
#endif

namespace tool {
namespace {

bool is_terminal([[maybe_unused]] int descriptor) {
#if defined(_WIN32)
  return false;
#else
  return isatty(descriptor) == 1;
#endif
}

bool on_terminal() {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return is_terminal(1);
}

std::string styled(const char* code, const std::string& text) {
  return on_terminal() ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

}  // namespace

bool error_is_terminal() { return is_terminal(2); }

std::string bold(const std::string& text) { return styled("1", text); }
std::string warning(const std::string& text) { return styled("1;33", text); }

int report(const brontes::Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "brontes: %s: %s\n", brontes::to_string(error.code), error.message.c_str());
  return failure;
}

std::string api_version(const brontes::DeviceInfo& device) {
  const std::uint32_t packed = device.api_version;
  return std::to_string(packed >> 22 & 0x7f) + "." + std::to_string(packed >> 12 & 0x3ff) + "." +
         std::to_string(packed & 0xfff);
}

std::string uuid_text(const brontes::DeviceInfo& device) {
  std::string text = brontes::util::hex(device.uuid);
  for (const std::size_t at : {20u, 16u, 12u, 8u}) text.insert(at, "-");
  return text;
}

void put_device(Json& json, const brontes::DeviceInfo& device) {
  json.put("index", device.index);
  json.put("name", device.name);
  json.put("type", brontes::to_string(device.type));
  json.put("driver", device.driver);
  json.put("vulkan", api_version(device));
  json.put("uuid", uuid_text(device));
  json.put("suitable", device.suitable);
  json.put("unsuitable_because", device.unsuitable_because);
}

void print_device(const brontes::DeviceInfo& device) {
  std::printf("Device %u: %s\n", device.index, bold(device.name).c_str());
  std::printf("  %s, %s, Vulkan %s\n", brontes::to_string(device.type), device.driver.c_str(),
              api_version(device).c_str());
  if (device.type != brontes::DeviceType::cpu) return;
  const std::string text = "!!  CPU DRIVER: no GPU is in use. Results are correct, but not GPU-fast.  !!";
  const std::string line(text.size(), '!');
  std::printf("\n%s\n%s\n%s\n", warning(line).c_str(), warning(text).c_str(), warning(line).c_str());
}

}  // namespace tool
