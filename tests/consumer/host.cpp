// A program with the shared library that loads a plug-in with the static one, runs both and unloads the plug-in.
#include <brontes/brontes.hpp>

#include <cstdio>
#include <cstring>
#include <string>

#include <dlfcn.h>

namespace {

bool mapped(const char* file) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return true;
  char line[4096];
  bool found = false;
  while (std::fgets(line, sizeof line, maps) != nullptr) found = found || std::strstr(line, file) != nullptr;
  std::fclose(maps);
  return found;
}

int run() {
  auto device = brontes::Device::open();
  if (!device) {
    std::fprintf(stderr, "host: %s\n", device.error().message.c_str());
    return 1;
  }
  brontes::Batch batch(*device);
  auto total = batch.sum(batch.upload({1.f, 2.f, 4.f}));
  if (batch.execute()) return 1;
  return batch.read(total).value()[0] == 7.f ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  // As plug-in hosts do it, with lazy binding and all: what the plug-in lacks would be taken from here.
  void* plugin = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto plugin_run = reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_run"));
  if (plugin_run == nullptr || run() != 0 || plugin_run() != 0 || run() != 0) return 1;
  if (!mapped(argv[1])) {
    std::fprintf(stderr, "%s is not found where it must be\n", argv[1]);
    return 1;
  }
  dlclose(plugin);
  if (mapped(argv[1])) {
    std::fprintf(stderr, "%s is still there after dlclose()\n", argv[1]);
    return 1;
  }
  return run();
}
