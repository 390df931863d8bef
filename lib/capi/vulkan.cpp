#define VK_NO_PROTOTYPES
#include <brontes/brontes_vulkan.h>
#include <brontes/vulkan.hpp>

#include "capi/device.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

struct brontes_queue_lock : Handle<Kind::queue_lock> {
  explicit brontes_queue_lock(decltype(vulkan::lock_queue(std::declval<const Device&>())) held) noexcept
      : lock(std::move(held)) {}
  decltype(vulkan::lock_queue(std::declval<const Device&>())) lock;
};

brontes_status brontes_vulkan_adopt(const brontes_vulkan_device* external, const brontes_device_options* options,
                                    brontes_device** device, brontes_error* error) {
  const char* const call = __func__;
  return make(call, device, error, [&](brontes_device*& out) -> Error {
    brontes_vulkan_device given;
    if (Error e = BRONTES_STRUCT(call, brontes_vulkan_device, external, given)) return e;
    DeviceOptions opening;
    if (Error e = device_options(call, options, opening)) return e;
    vulkan::ExternalDevice from;
    from.get_instance_proc_addr = given.get_instance_proc_addr;
    from.instance = given.instance;
    from.physical_device = given.physical_device;
    from.device = given.device;
    from.queue = given.queue;
    from.queue_family = given.queue_family;
    from.pointers = given.pointers != 0;
    return wrap(vulkan::adopt(from, opening), out);
  });
}

brontes_status brontes_vulkan_get_handles(const brontes_device* device, brontes_vulkan_device* handles,
                                          brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    const vulkan::Handles of = vulkan::handles(device->device);
    brontes_vulkan_device to{};
    to.get_instance_proc_addr = of.get_instance_proc_addr;
    to.instance = of.instance;
    to.physical_device = of.physical_device;
    to.device = of.device;
    to.queue = of.queue;
    to.queue_family = of.queue_family;
    return BRONTES_RESULT(call, brontes_vulkan_device, to, handles);
  });
}

brontes_status brontes_vulkan_lock_queue(const brontes_device* device, brontes_queue_lock** lock,
                                         brontes_error* error) {
  const char* const call = __func__;
  return make(call, lock, error, [&](brontes_queue_lock*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    out = new brontes_queue_lock(vulkan::lock_queue(device->device));
    return {};
  });
}

void brontes_vulkan_unlock_queue(brontes_queue_lock* lock) { destroy(lock); }

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
