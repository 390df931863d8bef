// Sharpens an image: a blur by a kernel of our own, and elementwise ops around it that run fused.
//
//   image_filter [OUT.pgm]
#include <brontes/brontes.hpp>

#include "blur.spv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr std::int32_t width = 250;
constexpr std::int32_t height = 140;
constexpr int radius = 4;
constexpr float sigma = 2.0f;
constexpr float amount = 1.5f;

// snippet: push constants
// The push constants of blur.comp: two ivec2 and a float.
struct Pass {
  std::int32_t size[2];
  std::int32_t direction[2];
  float sigma;
};
// end

// Rings and a corner, from 0 to 255.
std::vector<float> test_image() {
  std::vector<float> image;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float r = std::hypot(static_cast<float>(x - 120), static_cast<float>(y - 70));
      image.push_back(x < 40 && y < 40 ? 255.0f : 127.5f + 100.0f * std::sin(r / 6.0f));
    }
  }
  return image;
}

// The same on the host, in double precision.
std::vector<double> blurred(const std::vector<double>& from, int dx, int dy) {
  std::vector<double> to(from.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double sum = 0;
      double weights = 0;
      for (int i = -radius; i <= radius; ++i) {
        const int px = std::clamp(x + i * dx, 0, width - 1);
        const int py = std::clamp(y + i * dy, 0, height - 1);
        const double weight = std::exp(-0.5 * i * i / (double{sigma} * double{sigma}));
        sum += weight * from[static_cast<std::size_t>(py * width + px)];
        weights += weight;
      }
      to[static_cast<std::size_t>(y * width + x)] = sum / weights;
    }
  }
  return to;
}

double largest_error(const std::vector<float>& image, const std::vector<float>& result) {
  std::vector<double> x;
  for (float v : image) x.push_back(double{v} / 255);
  const std::vector<double> soft = blurred(blurred(x, 1, 0), 0, 1);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double sharp = std::clamp(x[i] + double{amount} * (x[i] - soft[i]), 0.0, 1.0) * 255;
    worst = std::max(worst, std::abs(sharp - double{result[i]}));
  }
  return worst;
}

int fail(const brontes::Error& e) {
  std::fprintf(stderr, "image_filter: %s\n", e.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto device = brontes::Device::open();
  if (!device) return fail(device.error());

  // snippet: kernel
  brontes::KernelOptions options;
  options.name = "blur";
  options.constants = {{0, radius}};  // constant_id = 0
  auto blur = brontes::Kernel::from_spirv(*device, blur_spv, options);
  if (!blur) return fail(blur.error());
  // end

  const std::vector<float> pixels = test_image();
  // snippet: call
  brontes::Batch batch(*device);
  const auto image = batch.scale(batch.upload(pixels, {height, width}), 1.0f / 255);

  const brontes::Groups groups = blur->groups_for(width, height);
  const Pass across{{width, height}, {1, 0}, sigma};
  const Pass down{{width, height}, {0, 1}, sigma};
  const auto rows = batch.call(*blur, {image}, image.shape(), groups, brontes::push_data(across));
  const auto soft = batch.call(*blur, {rows}, image.shape(), groups, brontes::push_data(down));

  const auto detail = batch.scale(batch.sub(image, soft), amount);
  const auto sharp = batch.scale(batch.clamp(batch.add(image, detail), 0, 1), 255);
  if (brontes::Error e = batch.execute()) return fail(e);
  const std::vector<float> result = batch.read(sharp).value();
  // end

  // One dispatch before the kernel, two of it, one after.
  const brontes::BatchStats stats = batch.stats();
  const double error = largest_error(pixels, result);
  std::printf("%d x %d, %d dispatches, %d barriers, off by at most %.2g of 255\n", width, height,
              static_cast<int>(stats.dispatches), static_cast<int>(stats.barriers), error);
  if (argc > 1) {
    std::ofstream file(argv[1], std::ios::binary);
    file << "P5\n" << width << " " << height << "\n255\n";
    for (float v : result) file.put(static_cast<char>(static_cast<unsigned char>(std::lround(v))));
    if (!file.flush()) return fail(brontes::Error(brontes::Errc::io, std::string(argv[1]) + " cannot be written"));
  }
  return stats.dispatches == 4 && error < 0.01 ? 0 : 1;
}
