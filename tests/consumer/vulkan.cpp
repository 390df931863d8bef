// A program that has the Vulkan headers from its dependency on Brontes.
#include <brontes/brontes.hpp>
#include <brontes/vulkan.hpp>

#include <cstdio>

int main() {
  auto device = brontes::Device::open();
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  return brontes::vulkan::handles(*device).device == VK_NULL_HANDLE ? 1 : 0;
}
