#include "api/access.hpp"
#include "api/elements.hpp"
#include "submit/transfer.hpp"

#include <string>

namespace brontes {
namespace {

Result<std::shared_ptr<vk::Allocation>> allocate(const char* call, const Device& device, const Shape& shape,
                                                 DType dtype, VkBufferUsageFlags extra_usage = 0) {
  const auto bytes = BufferAccess::bytes_of(call, device, shape, dtype);
  if (!bytes) return bytes.error();
  const auto context = DeviceAccess::context(device);
  return context->memory().allocate(context, *bytes, vk::MemoryUse::device, "brontes buffer", extra_usage);
}

// What write() and read() share: the buffer's memory, once the range has been found to be inside.
template <class T>
Error check_range(const char* call, const Buffer& buffer, T* data, std::uint64_t first, std::uint64_t count) {
  if (!BufferAccess::memory(buffer)) {
    return Error(Errc::invalid_argument, std::string(call) + ": the Buffer has been moved from");
  }
  using Element = std::remove_const_t<T>;
  if (!is_seen_as<Element>(buffer.dtype()) || (std::is_const_v<T> && buffer.dtype() == DType::mask)) {
    return Error(Errc::type_mismatch, std::string(call) + ": the buffer is " + to_string(buffer.dtype()) +
                                          " and the elements are " + name_of<Element>());
  }
  if (data == nullptr && count != 0) {
    return Error(Errc::null_data, std::string(call) + ": a null pointer for " + std::to_string(count) + " elements");
  }
  if (first > buffer.size() || count > buffer.size() - first) {
    return Error(Errc::shape_mismatch, std::string(call) + ": elements " + std::to_string(first) + " to " +
                                           std::to_string(first) + " + " + std::to_string(count) +
                                           " are not inside a buffer of " + std::to_string(buffer.size()));
  }
  return {};
}

template <class T>
Result<Buffer> filled(const Device& device, Span<const T> data, const Shape& shape, DType dtype) {
  Shape actual = shape;
  if (data.data() == nullptr && !data.empty()) {
    return Error(Errc::null_data, "Buffer::from: a null pointer for " + std::to_string(data.size()) + " elements");
  }
  if (shape.rank() == 0) {
    if (data.empty()) {
      return Error(Errc::empty_input, "Buffer::from: no data; a buffer of 0 elements needs an explicit shape");
    }
    actual = Shape(data.size());
  }
  if (actual.valid() && actual.count() != data.size()) {
    return Error(Errc::shape_mismatch,
                 "Buffer::from: " + std::to_string(data.size()) + " elements of data for " + to_string(actual));
  }
  auto memory = allocate("Buffer::from", device, actual, dtype);
  if (!memory) return memory.error();
  if (Error e = submit::write(**memory, 0, data.data(), data.size() * sizeof(T))) return e;
  return BufferAccess::make(std::move(*memory), actual, dtype);
}

template <class T>
Error write(Buffer& buffer, Span<const T> data, std::uint64_t first) {
  return guarded("Buffer::write", [&]() -> Error {
    if (Error e = check_range("Buffer::write", buffer, data.data(), first, data.size())) return e;
    vk::Allocation& memory = *BufferAccess::memory(buffer);
    const std::uint64_t begin = first * block_bytes(buffer.dtype());
    if constexpr (std::is_same_v<T, float>) {
      if (buffer.dtype() == DType::f16) {
        const std::vector<std::uint16_t> halves = halves_of(data);
        return submit::write(memory, begin, halves.data(), 2 * halves.size());
      }
    }
    return submit::write(memory, begin, data.data(), data.size() * sizeof(T));
  });
}

template <class T>
Error read(const Buffer& buffer, Span<T> out, std::uint64_t first) {
  return guarded("Buffer::read", [&]() -> Error {
    if (Error e = check_range("Buffer::read", buffer, out.data(), first, out.size())) return e;
    return read_elements(buffer.dtype(), out, [&](void* to, std::uint64_t bytes) {
      return submit::read(*BufferAccess::memory(buffer), first * block_bytes(buffer.dtype()), to, bytes);
    });
  });
}

}  // namespace

Result<std::uint64_t> BufferAccess::bytes_of(const char* call, const Device& device, const Shape& shape, DType dtype) {
  if (!DeviceAccess::engine(device))
    return Error(Errc::invalid_argument, std::string(call) + ": the Device has been moved from");
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::i32 && dtype != DType::mask) {
    return Error(Errc::invalid_argument,
                 std::string(call) + ": a buffer of " + to_string(dtype) + "; expected f32, f16, i32 or mask");
  }
  if (!shape.valid() || shape.rank() == 0) {
    return Error(Errc::invalid_argument, std::string(call) + ": a shape has 1 to 8 dims, none of them negative");
  }
  const std::uint64_t count = shape.count();
  if (count > Shape::no_count / block_bytes(dtype)) {
    return Error(Errc::size_overflow,
                 std::string(call) + ": the size of " + to_string(shape) + " does not fit in 64 bits");
  }
  const std::uint64_t bytes = row_bytes(dtype, count);
  const std::uint64_t most = DeviceAccess::engine(device)->traits().max_storage_range;
  if (bytes > most) {
    return Error(Errc::limit_exceeded, std::string(call) + ": " + to_string(shape) + " takes " + std::to_string(bytes) +
                                           " bytes, and this device takes at most " + std::to_string(most) +
                                           " per tensor (maxStorageBufferRange)");
  }
  return bytes;
}

Result<Buffer> BufferAccess::create(const char* call, const Device& device, const Shape& shape, DType dtype,
                                    std::uint32_t extra_usage) {
  auto memory = allocate(call, device, shape, dtype, extra_usage);
  if (!memory) return memory.error();
  if (Error e = submit::clear(**memory)) return e;
  return make(std::move(*memory), shape, dtype);
}

Buffer::Buffer(std::shared_ptr<vk::Allocation> memory, Shape shape, DType dtype) noexcept
    : memory_(std::move(memory)), shape_(shape), dtype_(dtype) {}
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;

Result<Buffer> Buffer::create(const Device& device, Shape shape, DType dtype) {
  return guarded("Buffer::create",
                 [&]() -> Result<Buffer> { return BufferAccess::create("Buffer::create", device, shape, dtype, 0); });
}

Result<Buffer> Buffer::from(const Device& device, Span<const float> data, Shape shape) {
  return guarded("Buffer::from", [&] { return filled(device, data, shape, DType::f32); });
}

Result<Buffer> Buffer::from(const Device& device, Span<const std::int32_t> data, Shape shape) {
  return guarded("Buffer::from", [&] { return filled(device, data, shape, DType::i32); });
}

Result<Buffer> Buffer::from_f16(const Device& device, Span<const float> data, Shape shape) {
  return guarded("Buffer::from", [&]() -> Result<Buffer> {
    if (data.data() == nullptr)
      return filled(device, Span<const std::uint16_t>(nullptr, data.size()), shape, DType::f16);
    const std::vector<std::uint16_t> halves = halves_of(data);
    return filled(device, Span<const std::uint16_t>(halves), shape, DType::f16);
  });
}

Result<Buffer> Buffer::from_f16(const Device& device, Span<const std::uint16_t> data, Shape shape) {
  return guarded("Buffer::from", [&] { return filled(device, data, shape, DType::f16); });
}

Error Buffer::write(Span<const float> data, std::uint64_t first) { return brontes::write(*this, data, first); }
Error Buffer::write(Span<const std::int32_t> data, std::uint64_t first) { return brontes::write(*this, data, first); }
Error Buffer::write(Span<const std::uint16_t> data, std::uint64_t first) { return brontes::write(*this, data, first); }

Error Buffer::read(Span<float> out, std::uint64_t first) const { return brontes::read(*this, out, first); }
Error Buffer::read(Span<std::int32_t> out, std::uint64_t first) const { return brontes::read(*this, out, first); }
Error Buffer::read(Span<std::uint16_t> out, std::uint64_t first) const { return brontes::read(*this, out, first); }

Result<std::vector<float>> Buffer::read() const {
  return read_vector<float>(size(), [&](Span<float> out) { return read(out); });
}

Result<std::vector<std::int32_t>> Buffer::read_i32() const {
  return read_vector<std::int32_t>(size(), [&](Span<std::int32_t> out) { return read(out); });
}

Result<std::vector<std::uint16_t>> Buffer::read_f16() const {
  return read_vector<std::uint16_t>(size(), [&](Span<std::uint16_t> out) { return read(out); });
}

}  // namespace brontes
