// A benchmark of an application's own work: found through pkg-config, plain C++17, and with all that brontes-bench has.
#include <brontes/bench.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace {

using brontes::Batch;
using brontes::Device;
using brontes::Tensor;
using brontes::bench::Case;
using brontes::bench::Environment;
using brontes::bench::must;

// What the application does: brightens an image and limits it to what can be shown.
Tensor brighten(Batch& batch, Tensor image) {
  return batch.clamp(batch.offset(batch.scale(image, 1.5f), 0.1f), 0.0f, 1.0f);
}

struct Image {
  const Device& device;
  std::vector<float> pixels;
};

// As the application calls it, upload and read included.
Case in_a_batch(const std::shared_ptr<Image>& image) {
  auto result = [image] {
    Batch batch(image->device);
    const Tensor bright = brighten(batch, batch.upload(image->pixels));
    must(batch.execute());
    return must(batch.read(bright));
  };
  Case c;
  c.run = [result] { result(); };
  c.check = [image, result]() -> std::string {
    const std::vector<float> bright = result();
    for (std::size_t i = 0; i < bright.size(); ++i) {
      const float want = std::fmin(image->pixels[i] * 1.5f + 0.1f, 1.0f);
      if (!(std::fabs(bright[i] - want) < 1e-6f)) return "pixel " + std::to_string(i);
    }
    return "";
  };
  c.dump = [image] {
    Batch batch(image->device);
    brighten(batch, batch.upload(image->pixels));
    return must(batch.dump());
  };
  c.bytes = 2.0 * sizeof(float) * static_cast<double>(image->pixels.size());
  return c;
}

// The same, planned once.
Case as_a_program(const std::shared_ptr<Image>& image) {
  Batch batch(image->device);
  const Tensor x = batch.upload(image->pixels);
  const Tensor bright = brighten(batch, x);
  auto program = std::make_shared<brontes::Program>(must(batch.compile()));
  auto out = std::make_shared<std::vector<float>>(image->pixels.size());
  Case c;
  c.run = [=] {
    must(program->write(x, image->pixels));
    must(program->run());
    must(program->read(bright, *out));
  };
  c.dump = [program] { return program->dump(); };
  c.bytes = 2.0 * sizeof(float) * static_cast<double>(image->pixels.size());
  return c;
}

}  // namespace

// snippet: main
int main(int argc, char** argv) {
  brontes::bench::Suite suite{"image", {}};
  for (const std::size_t side : {64u, 512u}) {
    suite.groups.push_back(
        {"image/brighten/" + std::to_string(side) + "x" + std::to_string(side),
         {"batch", "program"},
         {{"program", "batch"}},
         side == 64,
         [side](const Environment& environment) -> std::vector<Case> {
           auto image = std::make_shared<Image>(Image{environment.device, std::vector<float>(side * side, 0.25f)});
           return {in_a_batch(image), as_a_program(image)};
         }});
  }
  return brontes::bench::main(argc, argv, {{suite}});
}
// end
