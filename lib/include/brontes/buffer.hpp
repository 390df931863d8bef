// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace brontes {

namespace vk {
class Allocation;
}

/// Device memory that you own and that outlives batches: weights, state, results to be used again.
///
/// A batch uses it through Batch::import_buffer() without any upload and writes it through
/// Batch::store(); it never destroys it. Destroying a Buffer that work in flight still uses is safe:
/// the memory is freed when that work is done.
///
/// Thread-safety: const methods may run concurrently. write() must not run together with any other
/// use of the same buffer by another thread.
class BRONTES_API Buffer {
 public:
  /// A buffer of zeros, or of masks that are false. Errc::invalid_argument unless the type is f32, f16, i32 or mask.
  static Result<Buffer> create(const Device& device, Shape shape, DType dtype = DType::f32);
  /// A buffer holding `data`. Without a shape it is 1-D. Errc::shape_mismatch when data and shape
  /// differ in size.
  static Result<Buffer> from(const Device& device, Span<const float> data, Shape shape = {});
  static Result<Buffer> from(const Device& device, Span<const std::int32_t> data, Shape shape = {});
  /// A buffer of f16: the nearest to `data`, ties to even, or `data` itself, the bits of f16.
  static Result<Buffer> from_f16(const Device& device, Span<const float> data, Shape shape = {});
  static Result<Buffer> from_f16(const Device& device, Span<const std::uint16_t> data, Shape shape = {});

  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  const Shape& shape() const noexcept { return shape_; }
  DType dtype() const noexcept { return dtype_; }
  std::uint64_t size() const noexcept { return shape_.count(); }  ///< elements
  std::uint64_t bytes() const noexcept { return row_bytes(dtype(), size()); }

  /// Copies `data` into the buffer, starting at element `first`. Waits for work in flight that uses the buffer; returns
  /// when `data` may be reused. Errc::shape_mismatch when it does not fit, type_mismatch when the buffer is of another
  /// type. Floats are rounded to the nearest f16, ties to even, in a buffer of that; 16-bit integers are the bits of
  /// f16. Masks are written by Batch::store() only.
  Error write(Span<const float> data, std::uint64_t first = 0);
  Error write(Span<const std::int32_t> data, std::uint64_t first = 0);
  Error write(Span<const std::uint16_t> data, std::uint64_t first = 0);

  /// Copies elements from `first` on into `out`: f32 and f16 as floats, i32 and masks (0 and 1) as integers, f16 also
  /// as its bits. Waits for work in flight that uses the buffer. Errc::type_mismatch when the buffer is of another
  /// type.
  Error read(Span<float> out, std::uint64_t first = 0) const;
  Error read(Span<std::int32_t> out, std::uint64_t first = 0) const;
  Error read(Span<std::uint16_t> out, std::uint64_t first = 0) const;
  /// All elements.
  Result<std::vector<float>> read() const;
  Result<std::vector<std::int32_t>> read_i32() const;
  Result<std::vector<std::uint16_t>> read_f16() const;

 private:
  friend struct BufferAccess;
  Buffer(std::shared_ptr<vk::Allocation> memory, Shape shape, DType dtype) noexcept;
  std::shared_ptr<vk::Allocation> memory_;
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace brontes
