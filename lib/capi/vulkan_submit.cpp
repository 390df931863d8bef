#define VK_NO_PROTOTYPES
#include <brontes/brontes_vulkan.h>
#include <brontes/vulkan.hpp>

#include "capi/handles.hpp"
#include "capi/structs.hpp"

#include <vector>

using namespace brontes;
using namespace brontes::capi;

BRONTES_FULL(brontes_vulkan_wait, reserved);
BRONTES_FULL(brontes_vulkan_signal, value);
BRONTES_FULL(brontes_vulkan_submit_info, after);
BRONTES_FULL(brontes_vulkan_record_options, after_accesses);

namespace {

/// The lists of a vulkan::SubmitInfo, and what it is made of.
struct Lists {
  std::vector<vulkan::SemaphoreWait> waits;
  std::vector<vulkan::SemaphoreSignal> signals;
  vulkan::SubmitInfo info;
};

Error read_info(const char* call, const brontes_vulkan_submit_info* info, Lists& to) {
  brontes_vulkan_submit_info given;
  if (Error e = BRONTES_STRUCT(call, brontes_vulkan_submit_info, info, given)) return e;
  if (given.wait_count != 0 && given.waits == nullptr) return null_data(call, "semaphores to wait for");
  if (given.signal_count != 0 && given.signals == nullptr) return null_data(call, "semaphores to signal");
  for (const brontes_vulkan_wait& wait : Span<const brontes_vulkan_wait>(given.waits, given.wait_count)) {
    vulkan::SemaphoreWait one;
    one.semaphore = wait.semaphore;
    one.value = wait.value;
    if (wait.stages != 0) one.stages = wait.stages;
    to.waits.push_back(one);
  }
  for (const brontes_vulkan_signal& signal : Span<const brontes_vulkan_signal>(given.signals, given.signal_count))
    to.signals.push_back({signal.semaphore, signal.value});
  to.info.waits = to.waits;
  to.info.signals = to.signals;
  if (given.after == nullptr) return {};
  if (Error e = check(call, given.after, "submission")) return e;
  to.info.after = given.after->submission;
  return {};
}

using Transfer = Error (*)(const Buffer&, VkCommandBuffer, std::uint32_t, std::uint32_t);

brontes_status hand_over(const char* call, Transfer transfer, const brontes_buffer* buffer, VkCommandBuffer commands,
                         std::uint32_t from, std::uint32_t to, brontes_error* error) {
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    return transfer(buffer->buffer, commands, from, to);
  });
}

}  // namespace

brontes_status brontes_vulkan_submit_batch(brontes_batch* batch, const brontes_vulkan_submit_info* info,
                                           brontes_submission** submission, brontes_error* error) {
  if (submission != nullptr) *submission = nullptr;
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, batch, "batch")) return e;
    if (batch->error) return batch->error;
    Lists lists;
    if (Error e = read_info(call, info, lists)) return e;
    return submit_to(submission, [&] { return vulkan::submit(batch->batch, lists.info); });
  });
}

brontes_status brontes_vulkan_submit_program(brontes_program* program, const brontes_vulkan_submit_info* info,
                                             brontes_submission** submission, brontes_error* error) {
  if (submission != nullptr) *submission = nullptr;
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    Lists lists;
    if (Error e = read_info(call, info, lists)) return e;
    return submit_to(submission, [&] { return vulkan::submit(program->program, lists.info); });
  });
}

brontes_status brontes_vulkan_timeline(const brontes_submission* submission, VkSemaphore* semaphore, uint64_t* value,
                                       brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, submission, "submission")) return e;
    if (semaphore == nullptr || value == nullptr) return invalid(call, "a null pointer where the result goes");
    const vulkan::TimelinePoint point = vulkan::timeline(submission->submission);
    *semaphore = point.semaphore;
    *value = point.value;
    return {};
  });
}

brontes_status brontes_vulkan_record(brontes_program* program, VkCommandBuffer commands,
                                     const brontes_vulkan_record_options* options, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    brontes_vulkan_record_options given;
    if (Error e = BRONTES_STRUCT(call, brontes_vulkan_record_options, options, given)) return e;
    vulkan::RecordOptions recording;
    if (given.before_stages != 0) recording.before_stages = given.before_stages;
    if (given.before_writes != 0) recording.before_writes = given.before_writes;
    if (given.after_stages != 0) recording.after_stages = given.after_stages;
    if (given.after_accesses != 0) recording.after_accesses = given.after_accesses;
    return vulkan::record(program->program, commands, recording);
  });
}

brontes_status brontes_vulkan_release(const brontes_buffer* buffer, VkCommandBuffer commands, uint32_t from,
                                      uint32_t to, brontes_error* error) {
  return hand_over(__func__, vulkan::release, buffer, commands, from, to, error);
}

brontes_status brontes_vulkan_acquire(const brontes_buffer* buffer, VkCommandBuffer commands, uint32_t from,
                                      uint32_t to, brontes_error* error) {
  return hand_over(__func__, vulkan::acquire, buffer, commands, from, to, error);
}

brontes_status brontes_vulkan_name_buffer(const brontes_buffer* buffer, const char* name, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, buffer, "buffer")) return e;
    if (name == nullptr) return null_data(call, "a name");
    vulkan::set_name(buffer->buffer, name);
    return {};
  });
}

brontes_status brontes_vulkan_name_program(brontes_program* program, const char* name, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, program, "program")) return e;
    if (name == nullptr) return null_data(call, "a name");
    vulkan::set_name(program->program, name);
    return {};
  });
}
