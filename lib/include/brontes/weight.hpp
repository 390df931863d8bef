// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace brontes {

namespace vk {
class Allocation;
}

/// A weight matrix W[rows, columns] on the device, stored as f32, f16, bf16, q8_0 or q4_0. Products read
/// it as it is stored and add up in f32: y = x W^T, as Batch::linear() and Batch::matmul() with
/// Layout::nk compute it.
///
/// A matrix larger than a kernel can bind at once (DeviceInfo::max_storage_range) is kept in several
/// parts, which callers do not see.
///
/// Largest error of a stored weight w, where `a` is the largest magnitude in its block of 32:
///   f32   exact            f16   |w| / 2^11, and infinite from 65520 on     bf16   |w| / 2^8
///   q8_0  about a / 230    q4_0  about a / 8
///
/// Destroying a Weight that work in flight still uses is safe: the memory is freed when that work is done.
///
/// Thread-safety: const methods may run concurrently.
class BRONTES_API Weight {
 public:
  /// Converts f32 data, row-major. Errc::shape_mismatch when data and sizes differ, or when a row of q8_0 or
  /// q4_0 is not whole blocks of 32; Errc::invalid_argument, naming the element, when a block to be quantized
  /// holds NaN, infinity or a number beyond what its scale can be.
  static Result<Weight> from(const Device& device, Span<const float> data, std::uint64_t rows, std::uint64_t columns,
                             DType type = DType::f32);

  /// The same from the transposed matrix: B[columns, rows], which is the B[K, N] of Layout::kn. It is transposed
  /// here, once, so that products with it need no repacking, and it can be stored as any type and split into
  /// parts. linear(x, w) is then x times B. Positions in errors are those of W[rows, columns].
  static Result<Weight> from_transposed(const Device& device, Span<const float> data, std::uint64_t rows,
                                        std::uint64_t columns, DType type = DType::f32);

  /// Takes data as GGUF files store it: rows back to back, row_bytes() each. Nothing is rounded.
  static Result<Weight> from_stored(const Device& device, Span<const std::byte> data, std::uint64_t rows,
                                    std::uint64_t columns, DType type);

  Weight(Weight&&) noexcept;
  Weight& operator=(Weight&&) noexcept;
  ~Weight();

  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t columns() const noexcept { return columns_; }
  Shape shape() const noexcept { return {rows_, columns_}; }
  DType dtype() const noexcept { return type_; }
  std::uint64_t bytes() const noexcept;  ///< of device memory, with padding
  std::size_t parts() const noexcept { return parts_.size(); }

 private:
  friend struct WeightAccess;
  Weight() noexcept;
  std::vector<std::shared_ptr<vk::Allocation>> parts_;
  std::uint64_t part_rows_ = 0;  // of every part but the last, which may have fewer
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;
  DType type_ = DType::f32;
};

}  // namespace brontes
