// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

namespace brontes {

/// How elements are stored. Values of a batch are f32, f16, i32 or masks. bf16, q8_0 and q4_0 are for resident weights
/// only, which may be f16, too. Kernels turn all of these into f32 as they read them.
enum class DType : std::uint8_t {
  f32,
  f16,   ///< IEEE 754 binary16: half the memory and bandwidth of f32, 11 bits of precision, up to 65504
  bf16,  ///< the upper half of an f32
  q8_0,  ///< GGUF's Q8_0: blocks of 32 along a row, an f16 scale and 32 signed bytes
  q4_0,  ///< GGUF's Q4_0: blocks of 32 along a row, an f16 scale and 32 numbers of 4 bits
  i32,   ///< 32-bit two's complement; overflow wraps around
  mask,  ///< true or false, a 32-bit 1 or 0: what comparisons give and Batch::where() takes
};

/// The enumerator's name, for example "q8_0". Never null.
constexpr const char* to_string(DType type) noexcept {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::q8_0: return "q8_0";
    case DType::q4_0: return "q4_0";
    case DType::i32: return "i32";
    case DType::mask: return "mask";
  }
  return "unknown";
}

/// Elements that are stored together: 1, or 32 for the quantised types. Rows consist of whole blocks.
constexpr std::uint64_t block_elements(DType type) noexcept {
  return type == DType::q8_0 || type == DType::q4_0 ? 32 : 1;
}

/// Bytes of one block.
constexpr std::uint64_t block_bytes(DType type) noexcept {
  switch (type) {
    case DType::f32:
    case DType::i32:
    case DType::mask: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::q8_0: return 2 + 32;
    case DType::q4_0: return 2 + 16;
  }
  return 0;
}

/// Bytes of a row of `columns` elements, one block after the other; a part of a block counts as a
/// whole one. The caller sees to it that the product fits in 64 bits.
constexpr std::uint64_t row_bytes(DType type, std::uint64_t columns) noexcept {
  const std::uint64_t block = block_elements(type);
  return (columns / block + (columns % block != 0 ? 1 : 0)) * block_bytes(type);
}

/// A view of contiguous elements owned by somebody else: std::span for C++17.
/// Made from a pointer and a count, an array, or anything with data() and size().
template <class T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}  // NOLINT: implicit by design
  template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C&>().data()), T*> &&
                                              std::is_convertible_v<decltype(std::declval<C&>().size()), std::size_t>>>
  constexpr Span(C&& container) noexcept  // NOLINT: implicit by design
      : data_(container.data()), size_(container.size()) {}

  constexpr T* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size_; }
  constexpr T& operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The extents of a value, outermost first: {rows, cols} is row-major. One to eight dims; any of them
/// may be zero. Negative numbers and more than eight dims make a Shape that no op accepts.
class Shape {
 public:
  static constexpr std::size_t max_rank = 8;

  /// Rank 0: "no shape given".
  constexpr Shape() noexcept = default;

  template <class... Dims,
            class = std::enable_if_t<(sizeof...(Dims) > 0) && (std::is_integral_v<std::decay_t<Dims>> && ...)>>
  constexpr Shape(Dims... dims) noexcept {  // NOLINT: implicit, so that upload(data, {2, 3}) works
    (push(dims), ...);
  }

  /// For a rank that is known only at run time.
  static constexpr Shape of(Span<const std::uint64_t> dims) noexcept {
    Shape shape;
    for (const std::uint64_t extent : dims) shape.push(extent);
    return shape;
  }

  constexpr std::size_t rank() const noexcept { return rank_; }
  /// Extent of one dim; 1 for dims past the rank.
  constexpr std::uint64_t operator[](std::size_t dim) const noexcept {
    return dim < rank_ && dim < max_rank ? dims_[dim] : 1;
  }
  /// False for negative extents and for more than eight dims.
  constexpr bool valid() const noexcept { return valid_ && rank_ <= max_rank; }
  /// The product of the extents, or no_count when it does not fit in 64 bits.
  constexpr std::uint64_t count() const noexcept {
    std::uint64_t total = 1;
    bool zero = false;
    bool overflow = false;
    for (std::size_t i = 0; i < rank_ && i < max_rank; ++i) {
      if (dims_[i] == 0) {
        zero = true;
      } else if (total > no_count / dims_[i]) {
        overflow = true;
      } else {
        total *= dims_[i];
      }
    }
    return zero ? 0 : overflow ? no_count : total;
  }
  static constexpr std::uint64_t no_count = ~std::uint64_t{0};

  friend constexpr bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_ || a.valid_ != b.valid_) return false;
    for (std::size_t i = 0; i < max_rank; ++i) {
      if (a.dims_[i] != b.dims_[i]) return false;
    }
    return true;
  }
  friend constexpr bool operator!=(const Shape& a, const Shape& b) noexcept { return !(a == b); }

 private:
  template <class T>
  constexpr void push(T extent) noexcept {
    if constexpr (std::is_signed_v<T>) {
      if (extent < 0) valid_ = false;
    }
    if (rank_ < max_rank) dims_[rank_] = static_cast<std::uint64_t>(extent);
    if (rank_ <= max_rank) ++rank_;
  }

  std::array<std::uint64_t, max_rank> dims_{};
  std::uint8_t rank_ = 0;  // past max_rank is invalid, by how much does not matter
  bool valid_ = true;
};

/// For messages: "[2, 3]".
BRONTES_API std::string to_string(const Shape& shape);

/// What a slice takes of one dim: begin, begin + step, ... up to but not including end, as begin:end:step in numpy.
/// A negative begin or end counts from the end of the dim, and what lies outside of the dim is cut off. The step is not
/// 0; with a negative one the elements come in reverse. The default is the whole dim.
struct Range {
  static constexpr std::int64_t before_first = INT64_MIN;  ///< an end that takes the first element too, in reverse
  static constexpr std::int64_t past_last = INT64_MAX;     ///< an end that takes the last element too

  std::int64_t begin = 0;
  std::int64_t end = past_last;
  std::int64_t step = 1;

  /// Element i alone, which may count from the end.
  static constexpr Range at(std::int64_t i) noexcept { return {i, i == -1 ? past_last : i + 1, 1}; }
  /// All elements, the last one first.
  static constexpr Range reversed() noexcept { return {past_last, before_first, -1}; }
};

/// A handle to one value of one Batch: what an op returned, or what was uploaded or imported.
///
/// Cheap to copy. It carries the identity of its batch: used with another batch it is
/// Errc::foreign_tensor, used after Batch::reset() it is Errc::stale_tensor. A default-constructed
/// Tensor, and one returned by an op that failed, is invalid.
///
/// Thread-safety: a plain value.
class Tensor {
 public:
  constexpr Tensor() noexcept = default;

  /// False for a default-constructed tensor and for the result of an op that failed.
  constexpr bool valid() const noexcept { return serial_ != 0; }
  constexpr const Shape& shape() const noexcept { return shape_; }
  constexpr DType dtype() const noexcept { return dtype_; }
  /// Number of elements.
  constexpr std::uint64_t size() const noexcept { return shape_.count(); }

  friend constexpr bool operator==(const Tensor& a, const Tensor& b) noexcept {
    return a.serial_ == b.serial_ && a.generation_ == b.generation_ && a.index_ == b.index_;
  }
  friend constexpr bool operator!=(const Tensor& a, const Tensor& b) noexcept { return !(a == b); }

 private:
  friend struct TensorAccess;
  constexpr Tensor(std::uint64_t serial, std::uint32_t generation, std::uint32_t index, Shape shape,
                   DType dtype) noexcept
      : serial_(serial), generation_(generation), index_(index), shape_(shape), dtype_(dtype) {}

  std::uint64_t serial_ = 0;
  std::uint32_t generation_ = 0;
  std::uint32_t index_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace brontes
