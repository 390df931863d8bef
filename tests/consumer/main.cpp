// A program as a user would write it: found through pkg-config, plain C++17.
#include <brontes/brontes.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  auto device = brontes::Device::open();
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  std::printf("brontes %s on %s\n", brontes::version(), device->info().name.c_str());

  brontes::Batch batch(*device);
  auto x = batch.upload({1.f, 2.f, -3.f, 4.f});
  auto b = batch.upload({.5f, .5f, .5f, .5f});
  auto out = batch.add(batch.scale(batch.relu(x), 2.f), b);
  if (brontes::Error e = batch.execute()) {
    std::fprintf(stderr, "%s\n", e.message.c_str());
    return 1;
  }
  const std::vector<float> y = batch.read(out).value();
  const std::vector<float> expected = {2.5f, 4.5f, 0.5f, 8.5f};
  for (float v : y) std::printf("%g ", static_cast<double>(v));
  std::printf("\n");
  return y == expected ? 0 : 1;
}
