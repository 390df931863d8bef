#include "record/shape.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace brontes {

std::string to_string(const Shape& shape) {
  if (!shape.valid()) return "[invalid shape]";
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

namespace record {
namespace {

// The extents of `shape`, aligned at the last of `rank` dims, with ones in front.
std::array<std::uint64_t, Shape::max_rank> aligned(const Shape& shape, std::size_t rank) {
  std::array<std::uint64_t, Shape::max_rank> dims{1, 1, 1, 1};
  for (std::size_t i = 0; i < shape.rank(); ++i) dims[rank - shape.rank() + i] = shape[i];
  return dims;
}

Shape make_shape(const std::array<std::uint64_t, Shape::max_rank>& d, std::size_t rank) {
  switch (rank) {
    case 0: return Shape();
    case 1: return Shape(d[0]);
    case 2: return Shape(d[0], d[1]);
    case 3: return Shape(d[0], d[1], d[2]);
    default: return Shape(d[0], d[1], d[2], d[3]);
  }
}

}  // namespace

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  const auto da = aligned(a, rank);
  const auto db = aligned(b, rank);
  std::array<std::uint64_t, Shape::max_rank> out{1, 1, 1, 1};
  for (std::size_t i = 0; i < rank; ++i) {
    if (da[i] != db[i] && da[i] != 1 && db[i] != 1) return std::nullopt;
    out[i] = da[i] == 1 ? db[i] : da[i];
  }
  return make_shape(out, rank);
}

std::optional<Repeat> repetition(const Shape& operand, const Shape& result) {
  const std::size_t rank = result.rank();
  if (operand.rank() > rank) return std::nullopt;
  const auto own = aligned(operand, rank);
  Repeat repeat;
  bool inside = false;  // among the operand's own dims, walking from the last dim to the first
  bool before = false;  // past them
  for (std::size_t i = rank; i-- > 0;) {
    const std::uint64_t extent = result[i];
    if (extent == 1) {
      if (own[i] != 1) return std::nullopt;
    } else if (own[i] == extent) {
      if (before) return std::nullopt;
      inside = true;
      repeat.mod *= extent;
    } else if (own[i] == 1) {
      if (inside) {
        before = true;
      } else {
        repeat.div *= extent;
      }
    } else {
      return std::nullopt;
    }
  }
  if (!inside) repeat.div = 1;
  return repeat;
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > ~std::uint64_t{0} / b) return std::nullopt;
  return a * b;
}

}  // namespace record
}  // namespace brontes
