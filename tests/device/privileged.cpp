// What a program that is started set-uid or set-gid makes of its environment; privileges.cpp runs it. It is linked
// statically, since the dynamic linker finds no library of a build directory for such a program.
//
// Usage: privileged LIBRARY. Prints one line each: whether the execution is secure, whether a Vulkan loader that
// is opened is LIBRARY, the variables, and what Device::open() says.
#include "util/environment.hpp"
#include "vk/loader.hpp"

#include <brontes/device.hpp>

#include <cstdio>

#include <dlfcn.h>
#include <unistd.h>

namespace {

bool is_loaded(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::printf("secure=%d\n", brontes::util::secure_execution() ? 1 : 0);
  {
    const auto loader = brontes::vk::Loader::open();
    std::printf("loaded=%d\n", is_loaded(argv[1]) ? 1 : 0);
  }
  for (const char* name : {"BRONTES_VULKAN_LIBRARY", "BRONTES_DEVICE", "BRONTES_VALIDATION"}) {
    const char* value = brontes::util::environment(name);
    std::printf("%s=%s\n", name, value != nullptr ? value : "(unset)");
  }
  brontes::DeviceOptions options;
  options.on_message = [](brontes::Severity, const std::string&) {};
  const auto device = brontes::Device::open(options);
  std::printf("open=%s %s\n", to_string(device.error().code), device.error().message.c_str());
  std::fflush(stdout);
  // Not exit(): a leak checker cannot look into such a process.
  _exit(0);
}
