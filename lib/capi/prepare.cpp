#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

#include <brontes/prepare.hpp>
#include <brontes/tuning.hpp>

#include <algorithm>

using namespace brontes;
using namespace brontes::capi;

brontes_status brontes_batch_prepare(const brontes_batch* batch, const brontes_prepare_options* options,
                                     brontes_prepared* prepared, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, batch, "batch")) return e;
    if (batch->error) return batch->error;
    brontes_prepare_options given;
    if (Error e = BRONTES_STRUCT(call, brontes_prepare_options, options, given)) return e;
    PrepareOptions preparing;
    if (given.on_progress != nullptr) {
      preparing.on_progress = [given](std::size_t ready, std::size_t total) {
        return given.on_progress(given.user_data, ready, total) != 0;
      };
    }
    const auto done = prepare(batch->batch, preparing);
    if (!done) return done.error();
    if (prepared == nullptr) return {};
    brontes_prepared to{};
    to.total = done->total;
    to.ready = done->ready;
    to.created = done->created;
    return BRONTES_RESULT(call, brontes_prepared, to, prepared);
  });
}

brontes_status brontes_device_save_pipelines(const brontes_device* device, uint8_t** bytes, size_t* count,
                                             brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    if (bytes == nullptr || count == nullptr) return invalid(call, "a null pointer where the result goes");
    const auto saved = save_pipelines(device->device);
    if (!saved) return saved.error();
    *bytes = static_cast<std::uint8_t*>(copy_bytes(saved->data(), saved->size()));
    *count = saved->size();
    return {};
  });
}

brontes_status brontes_device_load_pipelines(const brontes_device* device, const uint8_t* bytes, size_t count,
                                             brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    if (count != 0 && bytes == nullptr) return null_data(call, "bytes");
    return load_pipelines(device->device, {bytes, count});
  });
}

namespace {

Error tune_options(const char* call, const brontes_tune_options* options, TuneOptions& to) {
  brontes_tune_options given;
  if (Error e = BRONTES_STRUCT(call, brontes_tune_options, options, given)) return e;
  if (given.shape_count != 0 && given.shapes == nullptr) return null_data(call, "shapes");
  for (const brontes_matmul_shape& shape : Span<const brontes_matmul_shape>(given.shapes, given.shape_count)) {
    MatmulShape one{shape.m, shape.k, shape.n, Layout::kn};
    if (Error e = set(one.layout, shape.layout, call, "brontes_layout")) return e;
    if (Error e = set(one.precision, shape.precision, call, "brontes_precision")) return e;
    to.shapes.push_back(one);
  }
  if (given.seconds != 0) to.seconds = given.seconds;
  to.compare_access = given.no_compare_access == 0;
  to.save = given.no_save == 0;
  if (given.on_progress != nullptr) {
    to.on_progress = [given](const TuneProgress& now) {
      return given.on_progress(given.user_data, now.done, now.total, now.seconds) != 0;
    };
  }
  return {};
}

}  // namespace

brontes_status brontes_tune_matmul(const brontes_device* device, const brontes_tune_options* options,
                                   brontes_tune_report* report, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    TuneOptions tuning;
    if (Error e = tune_options(call, options, tuning)) return e;
    const auto tuned = tune_matmul(device->device, tuning);
    if (!tuned) return tuned.error();
    if (report == nullptr) return {};
    brontes_tune_report to{};
    to.measured = tuned->shapes.size();
    to.changed = static_cast<std::uint64_t>(std::count_if(tuned->shapes.begin(), tuned->shapes.end(),
                                                          [](const TunedShape& shape) { return shape.variant != 0; }));
    to.skipped = tuned->skipped;
    to.stopped = tuned->stopped ? 1 : 0;
    to.saved = tuned->path.empty() ? 0 : 1;
    return BRONTES_RESULT(call, brontes_tune_report, to, report);
  });
}
