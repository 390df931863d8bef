#include "injector.hpp"

#include <brontes/device.hpp>

#include <catch2/catch_session.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  // Keeps the driver loaded: SwiftShader takes thread-specific keys whenever it is, and never gives them back.
  brontes::DeviceOptions options;
  options.pipeline_cache.enabled = false;
  const brontes::Result<brontes::Device> driver = brontes::Device::open(options);

  const int result = Catch::Session().run(argc, argv);
  std::printf("%zu failures were injected\n", brontes::test::injected());
  // tools/check adds these up.
  if (const char* path = std::getenv("BRONTES_INJECTIONS"); path != nullptr) {
    if (std::FILE* file = std::fopen(path, "w"); file != nullptr) {
      std::fprintf(file, "%zu\n", brontes::test::injected());
      std::fclose(file);
    }
  }
  return result;
}
