#include "record/shape.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>

namespace brontes {

std::string to_string(const Shape& shape) try {
  if (!shape.valid()) return "[invalid shape]";
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
} catch (const std::bad_alloc&) {
  return {};
}

namespace record {
namespace {

using Dims = std::array<std::uint64_t, Shape::max_rank>;

// The extents of `shape`, aligned at the last of `rank` dims, with ones in front.
Dims aligned(const Shape& shape, std::size_t rank) {
  Dims dims;
  dims.fill(1);
  for (std::size_t i = 0; i < shape.rank(); ++i) dims[rank - shape.rank() + i] = shape[i];
  return dims;
}

}  // namespace

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  const auto da = aligned(a, rank);
  const auto db = aligned(b, rank);
  Dims out{};
  for (std::size_t i = 0; i < rank; ++i) {
    if (da[i] != db[i] && da[i] != 1 && db[i] != 1) return std::nullopt;
    out[i] = da[i] == 1 ? db[i] : da[i];
  }
  return Shape::of({out.data(), rank});
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

std::uint64_t Access::operator()(std::uint64_t j) const noexcept {
  std::int64_t index = offset;
  for (std::size_t d = rank; d-- > 0;) {
    index += static_cast<std::int64_t>(j % extents[d]) * strides[d];
    j /= extents[d];
  }
  return static_cast<std::uint64_t>(index);
}

Access access(const Shape& result, Span<const std::int32_t> strides, std::uint32_t offset) {
  Access a;
  a.offset = offset;
  for (std::size_t d = 0; d < result.rank(); ++d) {
    const std::uint64_t extent = result[d];
    if (extent == 1) continue;
    // Joins the dim before it where one step there is this whole dim.
    const bool joins =
        a.rank != 0 && a.strides[a.rank - 1] == static_cast<std::int64_t>(extent) * strides[d] && extent != 0;
    if (!joins) a.extents[a.rank++] = 1;
    a.extents[a.rank - 1] *= static_cast<std::uint32_t>(extent);
    a.strides[a.rank - 1] = strides[d];
  }
  return a;
}

Access broadcast_access(const Shape& operand, const Shape& result) {
  const auto own = aligned(operand, result.rank());
  std::array<std::int32_t, Shape::max_rank> strides{};
  std::int32_t stride = 1;
  for (std::size_t d = result.rank(); d-- > 0;) {
    strides[d] = own[d] == 1 ? 0 : stride;
    stride *= static_cast<std::int32_t>(own[d]);
  }
  return access(result, {strides.data(), result.rank()}, 0);
}

std::optional<Repeat> repetition(const Access& a) {
  if (a.offset != 0) return std::nullopt;
  // Dims that repeat, the operand's own as one dim, and again dims that repeat: each at most once.
  std::size_t d = a.rank;
  Repeat repeat;
  if (d != 0 && a.strides[d - 1] == 0) repeat.div = a.extents[--d];
  if (d != 0 && a.strides[d - 1] == 1) repeat.mod = a.extents[--d];
  if (d != 0 && a.strides[d - 1] == 0) --d;
  if (d != 0) return std::nullopt;
  if (repeat.mod == 1) repeat.div = 1;
  return repeat;
}

Access access(const Repeat& repeat, std::uint64_t count) {
  if (count == 0) return {};
  const std::uint64_t dims[] = {count / repeat.mod / repeat.div, repeat.mod, repeat.div};
  const std::int32_t strides[] = {0, 1, 0};
  return access(Shape::of(dims), strides, 0);
}

Shape squeezed(const Shape& shape) {
  Dims dims{1};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < shape.rank() && i < Shape::max_rank; ++i) {
    if (shape[i] != 1) dims[rank++] = shape[i];
  }
  return Shape::of({dims.data(), std::max<std::size_t>(rank, 1)});
}

std::optional<Shape> unsqueezed(const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < 0) axis += rank + 1;
  if (axis < 0 || axis > rank || shape.rank() >= Shape::max_rank) return std::nullopt;
  Dims dims;
  dims.fill(1);
  for (std::int64_t i = 0; i < rank; ++i) {
    dims[static_cast<std::size_t>(i < axis ? i : i + 1)] = shape[static_cast<std::size_t>(i)];
  }
  return Shape::of({dims.data(), shape.rank() + 1});
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > ~std::uint64_t{0} / b) return std::nullopt;
  return a * b;
}

}  // namespace record
}  // namespace brontes
