#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace {

/// `make_from` is Buffer::from or Buffer::from_f16.
template <class T, class From>
brontes_status from(const char* call, const brontes_device* device, const T* data, std::size_t count,
                    const std::uint64_t* dims, std::size_t rank, brontes_buffer** buffer, brontes_error* error,
                    From make_from) {
  return make(call, buffer, error, [&](brontes_buffer*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    Shape shape;
    if (Error e = shape_of(call, dims, rank, shape)) return e;
    return wrap(make_from(device->device, Span<const T>(data, count), shape), out);
  });
}

template <class T>
brontes_status from(const char* call, const brontes_device* device, const T* data, std::size_t count,
                    const std::uint64_t* dims, std::size_t rank, brontes_buffer** buffer, brontes_error* error) {
  return from(
      call, device, data, count, dims, rank, buffer, error,
      [](const Device& on, Span<const T> elements, const Shape& shape) { return Buffer::from(on, elements, shape); });
}

template <class T>
brontes_status from_f16(const char* call, const brontes_device* device, const T* data, std::size_t count,
                        const std::uint64_t* dims, std::size_t rank, brontes_buffer** buffer, brontes_error* error) {
  return from(call, device, data, count, dims, rank, buffer, error,
              [](const Device& on, Span<const T> elements, const Shape& shape) {
                return Buffer::from_f16(on, elements, shape);
              });
}

template <class T>
brontes_status write(const char* call, brontes_buffer* buffer, const T* data, std::size_t count, std::uint64_t first,
                     brontes_error* error) {
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    return buffer->buffer.write(Span<const T>(data, count), first);
  });
}

template <class T>
brontes_status read(const char* call, const brontes_buffer* buffer, T* out, std::size_t count, std::uint64_t first,
                    brontes_error* error) {
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    return buffer->buffer.read(Span<T>(out, count), first);
  });
}

}  // namespace

brontes_status brontes_buffer_create(const brontes_device* device, const uint64_t* dims, size_t rank,
                                     brontes_dtype dtype, brontes_buffer** buffer, brontes_error* error) {
  const char* const call = __func__;
  return make(call, buffer, error, [&](brontes_buffer*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    Shape shape;
    if (Error e = shape_of(call, dims, rank, shape)) return e;
    DType type = DType::f32;
    if (Error e = set(type, dtype, call, "brontes_dtype")) return e;
    return wrap(Buffer::create(device->device, shape, type), out);
  });
}

brontes_status brontes_buffer_from(const brontes_device* device, const float* data, size_t count, const uint64_t* dims,
                                   size_t rank, brontes_buffer** buffer, brontes_error* error) {
  return from(__func__, device, data, count, dims, rank, buffer, error);
}

brontes_status brontes_buffer_from_i32(const brontes_device* device, const int32_t* data, size_t count,
                                       const uint64_t* dims, size_t rank, brontes_buffer** buffer,
                                       brontes_error* error) {
  return from(__func__, device, data, count, dims, rank, buffer, error);
}

brontes_status brontes_buffer_from_f16(const brontes_device* device, const float* data, size_t count,
                                       const uint64_t* dims, size_t rank, brontes_buffer** buffer,
                                       brontes_error* error) {
  return from_f16(__func__, device, data, count, dims, rank, buffer, error);
}

brontes_status brontes_buffer_from_f16_bits(const brontes_device* device, const uint16_t* data, size_t count,
                                            const uint64_t* dims, size_t rank, brontes_buffer** buffer,
                                            brontes_error* error) {
  return from_f16(__func__, device, data, count, dims, rank, buffer, error);
}

void brontes_buffer_destroy(brontes_buffer* buffer) { destroy(buffer); }

size_t brontes_buffer_shape(const brontes_buffer* buffer, uint64_t dims[BRONTES_MAX_RANK]) {
  return is(buffer) ? write_shape(buffer->buffer.shape(), dims) : 0;
}

brontes_dtype brontes_buffer_dtype(const brontes_buffer* buffer) {
  return is(buffer) ? to_c(buffer->buffer.dtype()) : -1;
}

uint64_t brontes_buffer_size(const brontes_buffer* buffer) { return is(buffer) ? buffer->buffer.size() : 0; }

uint64_t brontes_buffer_bytes(const brontes_buffer* buffer) { return is(buffer) ? buffer->buffer.bytes() : 0; }

brontes_status brontes_buffer_write(brontes_buffer* buffer, const float* data, size_t count, uint64_t first,
                                    brontes_error* error) {
  return write(__func__, buffer, data, count, first, error);
}

brontes_status brontes_buffer_write_i32(brontes_buffer* buffer, const int32_t* data, size_t count, uint64_t first,
                                        brontes_error* error) {
  return write(__func__, buffer, data, count, first, error);
}

brontes_status brontes_buffer_write_f16_bits(brontes_buffer* buffer, const uint16_t* data, size_t count, uint64_t first,
                                             brontes_error* error) {
  return write(__func__, buffer, data, count, first, error);
}

brontes_status brontes_buffer_read(const brontes_buffer* buffer, float* out, size_t count, uint64_t first,
                                   brontes_error* error) {
  return read(__func__, buffer, out, count, first, error);
}

brontes_status brontes_buffer_read_i32(const brontes_buffer* buffer, int32_t* out, size_t count, uint64_t first,
                                       brontes_error* error) {
  return read(__func__, buffer, out, count, first, error);
}

brontes_status brontes_buffer_read_f16_bits(const brontes_buffer* buffer, uint16_t* out, size_t count, uint64_t first,
                                            brontes_error* error) {
  return read(__func__, buffer, out, count, first, error);
}
