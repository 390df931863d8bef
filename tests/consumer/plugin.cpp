// A plug-in with Brontes linked into it, for host.cpp.
#include <brontes/brontes.hpp>

#include <cstdio>
#include <vector>

extern "C" __attribute__((visibility("default"))) int plugin_run() {
  auto device = brontes::Device::open();
  if (!device) {
    std::fprintf(stderr, "plug-in: %s\n", device.error().message.c_str());
    return 1;
  }
  brontes::Batch batch(*device);
  auto total = batch.sum(batch.upload({1.f, 2.f, 3.f}));
  if (brontes::Error e = batch.execute()) {
    std::fprintf(stderr, "plug-in: %s\n", e.message.c_str());
    return 1;
  }
  brontes::MatmulCache cache(*device);
  const std::vector<float> weights(6, 1.f);
  if (cache.upload_weight("w", weights, 2, 3)) return 1;
  try {
    static_cast<void>(batch.read(brontes::Tensor()).value());
    return 1;
  } catch (const brontes::BadResult&) {
    // thrown and caught on this side
  }
  return batch.read(total).value()[0] == 6.f ? 0 : 1;
}
