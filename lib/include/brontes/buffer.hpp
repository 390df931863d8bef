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
/// the memory goes when that work is done.
///
/// Thread-safety: const methods may run concurrently. write() must not run together with any other
/// use of the same buffer by another thread.
class BRONTES_API Buffer {
 public:
  /// A buffer of zeros.
  static Result<Buffer> create(const Device& device, Shape shape);
  /// A buffer holding `data`. Without a shape it is 1-D. Errc::shape_mismatch when data and shape
  /// differ in size.
  static Result<Buffer> from(const Device& device, Span<const float> data, Shape shape = {});

  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  const Shape& shape() const noexcept { return shape_; }
  DType dtype() const noexcept { return DType::f32; }
  std::uint64_t size() const noexcept { return shape_.count(); }  ///< elements
  std::uint64_t bytes() const noexcept { return row_bytes(dtype(), size()); }

  /// Copies `data` to element `first` and on. Waits for work in flight that uses the buffer; returns
  /// when `data` may be reused. Errc::shape_mismatch when it does not fit.
  Error write(Span<const float> data, std::uint64_t first = 0);

  /// Copies elements from `first` on into `out`. Waits for work in flight that uses the buffer.
  Error read(Span<float> out, std::uint64_t first = 0) const;
  /// All elements.
  Result<std::vector<float>> read() const;

 private:
  friend struct BufferAccess;
  Buffer(std::shared_ptr<vk::Allocation> memory, Shape shape) noexcept;
  std::shared_ptr<vk::Allocation> memory_;
  Shape shape_;
};

}  // namespace brontes
