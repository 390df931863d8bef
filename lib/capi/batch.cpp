#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace brontes::capi {

brontes_batch_stats to_c(const BatchStats& stats) noexcept {
  brontes_batch_stats to{};
  to.operations = stats.operations;
  to.values = stats.values;
  to.dropped_operations = stats.dropped_operations;
  to.fused_operations = stats.fused_operations;
  to.dispatches = stats.dispatches;
  to.barriers = stats.barriers;
  to.boundary_barriers = stats.boundary_barriers;
  to.submits = stats.submits;
  to.transfers_up = stats.transfers_up;
  to.transfers_down = stats.transfers_down;
  to.bytes_up = stats.bytes_up;
  to.bytes_down = stats.bytes_down;
  to.copy_commands = stats.copy_commands;
  to.pipelines_created = stats.pipelines_created;
  to.allocations = stats.allocations;
  to.arena_bytes = stats.arena_bytes;
  to.arena_bytes_without_reuse = stats.arena_bytes_without_reuse;
  to.pipelines_used = stats.pipelines_used;
  to.spirv_bytes = stats.spirv_bytes;
  to.fused_programs = stats.fused_programs;
  return to;
}

brontes_memory_needs to_c(const MemoryNeeds& needs) noexcept {
  brontes_memory_needs to{};
  to.device_bytes = needs.device_bytes;
  to.upload_bytes = needs.upload_bytes;
  to.readback_bytes = needs.readback_bytes;
  to.buffers = needs.buffers;
  to.table_bytes = needs.table_bytes;
  return to;
}

}  // namespace brontes::capi

brontes::Error brontes_batch::find(const char* op, brontes_tensor number, brontes::Tensor& to) const {
  const Tensor* const found = tensors->find(number, tensors->size());
  if (found != nullptr) {
    to = *found;
    return {};
  }
  const std::uint64_t tag = TensorTable::tag_of(number);
  if (tag == 0 || tag == tensors->tag()) {
    return Error(Errc::invalid_tensor,
                 std::string(op) + (number == BRONTES_NO_TENSOR ? ": no tensor, as an op returns it that failed"
                                                                : ": a number that is no tensor"));
  }
  if (was_mine(tag)) {
    return Error(Errc::stale_tensor, std::string(op) + ": the tensor is from before the batch was reset");
  }
  return Error(Errc::foreign_tensor, std::string(op) + ": the tensor belongs to another batch");
}

namespace {

template <class Batch, class Body>
brontes_status with_batch(const char* call, Batch* batch, brontes_error* error, Body body) {
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, batch, "batch")) return e;
    return body();
  });
}

template <class T>
brontes_status read(const char* call, const brontes_batch* batch, brontes_tensor number, T* out, std::size_t count,
                    brontes_error* error) {
  return with_batch(call, batch, error, [&]() -> Error {
    Tensor x;
    if (Error e = batch->find("read", number, x)) return e;
    return batch->batch.read(x, Span<T>(out, count));
  });
}

}  // namespace

brontes_status brontes_batch_create(const brontes_device* device, const brontes_batch_options* options,
                                    brontes_batch** batch, brontes_error* error) {
  const char* const call = __func__;
  return make(call, batch, error, [&](brontes_batch*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    brontes_batch_options given;
    if (Error e = BRONTES_STRUCT(call, brontes_batch_options, options, given)) return e;
    BatchOptions making;
    making.keep_all = given.keep_all != 0;
    making.keep_marked_only = given.keep_marked_only != 0;
    making.fuse = given.no_fuse == 0;
    making.reuse_memory = given.no_memory_reuse == 0;
    making.work_per_submit = given.work_per_submit;
    making.milliseconds_per_submit = given.milliseconds_per_submit;
    if (Error e = set(making.matmul, given.matmul, call, "brontes_matmul_kernel")) return e;
    if (Error e = set(making.precision, given.precision, call, "brontes_precision")) return e;
    making.batch_invariant = given.batch_invariant != 0;
    auto made = std::make_unique<brontes_batch>(device->device, making);
    if (made->batch.error()) return made->batch.error();
    out = made.release();
    return {};
  });
}

void brontes_batch_destroy(brontes_batch* batch) { destroy(batch); }

brontes_status brontes_batch_execute(brontes_batch* batch, brontes_error* error) {
  return with_batch(__func__, batch, error, [&] { return batch->error ? batch->error : batch->batch.execute(); });
}

brontes_status brontes_batch_submit(brontes_batch* batch, brontes_submission** submission, brontes_error* error) {
  if (submission != nullptr) *submission = nullptr;
  return with_batch(__func__, batch, error, [&]() -> Error {
    if (batch->error) return batch->error;
    return submit_to(submission, [&] { return batch->batch.submit(); });
  });
}

brontes_status brontes_batch_compile(brontes_batch* batch, brontes_program** program, brontes_error* error) {
  const char* const call = __func__;
  return make(call, program, error, [&](brontes_program*& out) -> Error {
    if (Error e = check(call, batch, "batch")) return e;
    if (batch->error) return batch->error;
    auto compiled = batch->batch.compile();
    if (!compiled) return compiled.error();
    out = new brontes_program(std::move(*compiled), batch->tensors);
    batch->tensors->shared = true;
    return {};
  });
}

brontes_status brontes_batch_read(const brontes_batch* batch, brontes_tensor x, float* out, size_t count,
                                  brontes_error* error) {
  return read(__func__, batch, x, out, count, error);
}

brontes_status brontes_batch_read_i32(const brontes_batch* batch, brontes_tensor x, int32_t* out, size_t count,
                                      brontes_error* error) {
  return read(__func__, batch, x, out, count, error);
}

brontes_status brontes_batch_read_f16_bits(const brontes_batch* batch, brontes_tensor x, uint16_t* out, size_t count,
                                           brontes_error* error) {
  return read(__func__, batch, x, out, count, error);
}

brontes_status brontes_batch_reset(brontes_batch* batch, brontes_error* error) {
  return with_batch(__func__, batch, error, [&]() -> Error {
    const std::uint64_t old = batch->tensors->tag();
    if (batch->tensors->shared) {
      batch->tensors = std::make_shared<TensorTable>();
    } else {
      batch->tensors->restart();
    }
    batch->old_tags[batch->resets++ % batch->old_tags.size()] = old;
    batch->error = Error();
    batch->batch.reset();
    return {};
  });
}

brontes_status brontes_batch_error(const brontes_batch* batch, brontes_error* error) {
  return with_batch(__func__, batch, error, [&] { return batch->first_error(); });
}

brontes_status brontes_batch_clear_error(brontes_batch* batch, brontes_error* error) {
  return with_batch(__func__, batch, error, [&]() -> Error {
    Error own = std::exchange(batch->error, Error());
    Error recorded = batch->batch.clear_error();
    return own ? own : recorded;
  });
}

size_t brontes_batch_num_operations(const brontes_batch* batch) {
  return is(batch) ? batch->batch.num_operations() : 0;
}

size_t brontes_batch_num_buffers(const brontes_batch* batch) { return is(batch) ? batch->batch.num_buffers() : 0; }

brontes_status brontes_batch_get_stats(const brontes_batch* batch, brontes_batch_stats* stats, brontes_error* error) {
  const char* const call = __func__;
  return with_batch(call, batch, error,
                    [&] { return BRONTES_RESULT(call, brontes_batch_stats, to_c(batch->batch.stats()), stats); });
}

brontes_status brontes_batch_predict_memory(const brontes_batch* batch, brontes_memory_needs* needs,
                                            brontes_error* error) {
  const char* const call = __func__;
  return with_batch(call, batch, error, [&]() -> Error {
    const auto predicted = batch->batch.predict_memory();
    if (!predicted) return predicted.error();
    return BRONTES_RESULT(call, brontes_memory_needs, to_c(*predicted), needs);
  });
}

brontes_status brontes_batch_dump(const brontes_batch* batch, brontes_dump_format format, brontes_dump_stage stage,
                                  char** text, brontes_error* error) {
  const char* const call = __func__;
  return make(call, text, error, [&](char*& out) -> Error {
    if (Error e = check(call, batch, "batch")) return e;
    DumpFormat as{};
    DumpStage of{};
    if (Error e = set(as, format, call, "brontes_dump_format")) return e;
    if (Error e = set(of, stage, call, "brontes_dump_stage")) return e;
    const auto dumped = batch->batch.dump(as, of);
    if (!dumped) return dumped.error();
    out = copy_text(*dumped);
    return {};
  });
}

size_t brontes_tensor_shape(const brontes_batch* batch, brontes_tensor x, uint64_t dims[BRONTES_MAX_RANK]) {
  const Tensor* const found = is(batch) ? batch->tensors->find(x, batch->tensors->size()) : nullptr;
  return found == nullptr ? 0 : write_shape(found->shape(), dims);
}

brontes_dtype brontes_tensor_dtype(const brontes_batch* batch, brontes_tensor x) {
  const Tensor* const found = is(batch) ? batch->tensors->find(x, batch->tensors->size()) : nullptr;
  return found == nullptr ? -1 : to_c(found->dtype());
}

uint64_t brontes_tensor_size(const brontes_batch* batch, brontes_tensor x) {
  const Tensor* const found = is(batch) ? batch->tensors->find(x, batch->tensors->size()) : nullptr;
  return found == nullptr ? 0 : found->size();
}
