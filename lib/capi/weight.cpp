#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace {

template <class Make>
brontes_status weight_from(const char* call, const brontes_device* device, brontes_dtype dtype, brontes_weight** weight,
                           brontes_error* error, Make make_weight) {
  return make(call, weight, error, [&](brontes_weight*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    DType type = DType::f32;
    if (Error e = set(type, dtype, call, "brontes_dtype")) return e;
    return wrap(make_weight(device->device, type), out);
  });
}

}  // namespace

brontes_status brontes_weight_from(const brontes_device* device, const float* data, size_t count, uint64_t rows,
                                   uint64_t columns, brontes_dtype dtype, brontes_weight** weight,
                                   brontes_error* error) {
  return weight_from(__func__, device, dtype, weight, error, [&](const Device& on, DType type) {
    return Weight::from(on, {data, count}, rows, columns, type);
  });
}

brontes_status brontes_weight_from_transposed(const brontes_device* device, const float* data, size_t count,
                                              uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                              brontes_weight** weight, brontes_error* error) {
  return weight_from(__func__, device, dtype, weight, error, [&](const Device& on, DType type) {
    return Weight::from_transposed(on, {data, count}, rows, columns, type);
  });
}

brontes_status brontes_weight_from_stored(const brontes_device* device, const void* data, size_t bytes, uint64_t rows,
                                          uint64_t columns, brontes_dtype dtype, brontes_weight** weight,
                                          brontes_error* error) {
  return weight_from(__func__, device, dtype, weight, error, [&](const Device& on, DType type) {
    return Weight::from_stored(on, {static_cast<const std::byte*>(data), bytes}, rows, columns, type);
  });
}

void brontes_weight_destroy(brontes_weight* weight) { destroy(weight); }

uint64_t brontes_weight_rows(const brontes_weight* weight) { return is(weight) ? weight->weight->rows() : 0; }

uint64_t brontes_weight_columns(const brontes_weight* weight) { return is(weight) ? weight->weight->columns() : 0; }

brontes_dtype brontes_weight_dtype(const brontes_weight* weight) {
  return is(weight) ? to_c(weight->weight->dtype()) : -1;
}

uint64_t brontes_weight_bytes(const brontes_weight* weight) { return is(weight) ? weight->weight->bytes() : 0; }

size_t brontes_weight_parts(const brontes_weight* weight) { return is(weight) ? weight->weight->parts() : 0; }
