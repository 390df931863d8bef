// numpy's .npy files: f32, i32 and bool, in C order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

struct Npy {
  enum class Type { f32, i32, boolean };

  Type type = Type::f32;
  std::vector<std::uint64_t> shape;
  std::vector<float> floats;           // of f32
  std::vector<std::int32_t> integers;  // of i32; 0 and 1 for bool
};

/// Versions 1 to 3 of the format. f64 and i64 are converted if every number fits. Throws InputError otherwise.
Npy read_npy(std::string_view bytes);

/// Version 1, little-endian.
std::string write_npy(const Npy& array);

}  // namespace tool
