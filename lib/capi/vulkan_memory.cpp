#define VK_NO_PROTOTYPES
#include <brontes/brontes_vulkan.h>
#include <brontes/vulkan.hpp>

#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

BRONTES_FULL(brontes_vulkan_buffer, reserved);
BRONTES_FULL(brontes_vulkan_region, bytes);
BRONTES_FULL(brontes_vulkan_memory_fd, reserved);

namespace {

/// A function that returns a buffer of a shape and type; `body` makes it of these.
template <class Body>
brontes_status make_buffer(const char* call, const brontes_device* device, const std::uint64_t* dims, std::size_t rank,
                           brontes_dtype dtype, brontes_buffer** buffer, brontes_error* error, Body body) {
  return make(call, buffer, error, [&](brontes_buffer*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    Shape shape;
    if (Error e = shape_of(call, dims, rank, shape)) return e;
    DType type = DType::f32;
    if (Error e = set(type, dtype, call, "brontes_dtype")) return e;
    return body(shape, type, out);
  });
}

}  // namespace

brontes_status brontes_vulkan_buffer_region(const brontes_buffer* buffer, brontes_vulkan_region* region,
                                            brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    const vulkan::BufferRegion of = vulkan::region(buffer->buffer);
    brontes_vulkan_region to{};
    to.buffer = of.buffer;
    to.offset = of.offset;
    to.bytes = of.bytes;
    return BRONTES_RESULT(call, brontes_vulkan_region, to, region);
  });
}

VkDeviceSize brontes_vulkan_import_alignment(const brontes_device* device) {
  return is(device) ? vulkan::import_alignment(device->device) : 0;
}

VkDeviceSize brontes_vulkan_host_memory_alignment(const brontes_device* device) {
  return is(device) ? vulkan::host_memory_alignment(device->device) : 0;
}

brontes_status brontes_vulkan_import_buffer(const brontes_device* device, const brontes_vulkan_buffer* external,
                                            const uint64_t* dims, size_t rank, brontes_dtype dtype,
                                            brontes_buffer** buffer, brontes_error* error) {
  const char* const call = __func__;
  return make_buffer(call, device, dims, rank, dtype, buffer, error, [&](Shape shape, DType type, auto& out) -> Error {
    brontes_vulkan_buffer given;
    if (Error e = BRONTES_STRUCT(call, brontes_vulkan_buffer, external, given)) return e;
    vulkan::ExternalBuffer from;
    from.buffer = given.buffer;
    from.buffer_bytes = given.buffer_bytes;
    from.usage = given.usage;
    from.offset = given.offset;
    from.bytes = given.bytes;
    return wrap(vulkan::import_buffer(device->device, from, shape, type), out);
  });
}

brontes_status brontes_vulkan_last_use(const brontes_buffer* buffer, brontes_submission** submission,
                                       brontes_error* error) {
  const char* const call = __func__;
  return make(call, submission, error, [&](brontes_submission*& out) -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    out = new brontes_submission(vulkan::last_use(buffer->buffer));
    return {};
  });
}

brontes_status brontes_vulkan_create_buffer(const brontes_device* device, const uint64_t* dims, size_t rank,
                                            brontes_dtype dtype, VkBufferUsageFlags extra_usage,
                                            brontes_buffer** buffer, brontes_error* error) {
  return make_buffer(__func__, device, dims, rank, dtype, buffer, error, [&](Shape shape, DType type, auto& out) {
    return wrap(vulkan::create_buffer(device->device, shape, type, extra_usage), out);
  });
}

brontes_status brontes_vulkan_import_host_memory(const brontes_device* device, void* data, size_t bytes,
                                                 const uint64_t* dims, size_t rank, brontes_dtype dtype,
                                                 brontes_buffer** buffer, brontes_error* error) {
  return make_buffer(__func__, device, dims, rank, dtype, buffer, error, [&](Shape shape, DType type, auto& out) {
    return wrap(vulkan::import_host_memory(device->device, data, bytes, shape, type), out);
  });
}

brontes_status brontes_vulkan_create_exportable_buffer(const brontes_device* device, const uint64_t* dims, size_t rank,
                                                       brontes_dtype dtype, VkBufferUsageFlags extra_usage,
                                                       brontes_buffer** buffer, brontes_error* error) {
  return make_buffer(__func__, device, dims, rank, dtype, buffer, error, [&](Shape shape, DType type, auto& out) {
    return wrap(vulkan::create_exportable_buffer(device->device, shape, type, extra_usage), out);
  });
}

brontes_status brontes_vulkan_export_fd(const brontes_buffer* buffer, brontes_vulkan_memory_fd* memory,
                                        brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    // Before there is a descriptor that nobody would close.
    if (Error e = BRONTES_RESULT(call, brontes_vulkan_memory_fd, brontes_vulkan_memory_fd{}, memory)) return e;
    const auto exported = vulkan::export_fd(buffer->buffer);
    if (!exported) return exported.error();
    brontes_vulkan_memory_fd to{};
    to.allocation_bytes = exported->allocation_bytes;
    to.memory_type = exported->memory_type;
    to.fd = exported->fd;
    to.dedicated = exported->dedicated ? 1 : 0;
    return BRONTES_RESULT(call, brontes_vulkan_memory_fd, to, memory);
  });
}

brontes_status brontes_vulkan_import_fd(const brontes_device* device, const brontes_vulkan_memory_fd* memory,
                                        const uint64_t* dims, size_t rank, brontes_dtype dtype, brontes_buffer** buffer,
                                        brontes_error* error) {
  const char* const call = __func__;
  return make_buffer(call, device, dims, rank, dtype, buffer, error, [&](Shape shape, DType type, auto& out) -> Error {
    if (memory == nullptr) return invalid(call, "a null pointer for the memory");
    brontes_vulkan_memory_fd given;
    if (Error e = BRONTES_STRUCT(call, brontes_vulkan_memory_fd, memory, given)) return e;
    vulkan::MemoryFd from;
    from.fd = given.fd;
    from.allocation_bytes = given.allocation_bytes;
    from.memory_type = given.memory_type;
    from.dedicated = given.dedicated != 0;
    return wrap(vulkan::import_fd(device->device, from, shape, type), out);
  });
}
