// Recording: every op of Batch.
#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/matmul.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace {

/// A call that records. `body` returns an Error of this room; errors of the ops are the batch's.
template <class Body>
void recording(brontes_batch* batch, const char* op, Body body) noexcept {
  if (Error e = caught(op, body)) batch->fail(std::move(e));
}

Error too_many(const char* op) {
  return Error(Errc::limit_exceeded, std::string(op) + ": more than " + std::to_string(TensorTable::max_size) +
                                         " tensors of one batch; reset it");
}

/// An op with tensors as operands. `body` gets the batch and them, and returns a Tensor or an Error in its last
/// argument. Room for the result is had first: what was recorded is never lost.
template <class Body, class... Numbers>
brontes_tensor record(brontes_batch* batch, const char* op, Body body, Numbers... numbers) noexcept {
  if (!is(batch)) return BRONTES_NO_TENSOR;
  brontes_tensor result = BRONTES_NO_TENSOR;
  recording(batch, op, [&]() -> Error {
    if (!batch->tensors->reserve(1)) return too_many(op);
    std::array<Tensor, sizeof...(Numbers)> operands;
    Error error;
    std::size_t i = 0;
    // The first bad operand counts.
    static_cast<void>(((error = batch->find(op, numbers, operands[i++]), !error) && ...));
    if (error) return error;
    const Tensor made = std::apply([&](const auto&... x) { return body(batch->batch, x..., error); }, operands);
    if (made.valid()) result = batch->tensors->add(made);
    return error;
  });
  return result;
}

/// Likewise for any number of operands and results.
template <class Body>
brontes_status record_all(brontes_batch* batch, const char* op, const brontes_tensor* inputs, std::size_t input_count,
                          brontes_tensor* out, std::size_t out_count, Body body) noexcept {
  if (!is(batch)) return BRONTES_ERROR_INVALID_ARGUMENT;
  recording(batch, op, [&]() -> Error {
    if (out == nullptr && out_count != 0) return null_data(op, "the results");
    std::fill_n(out, out_count, BRONTES_NO_TENSOR);
    if (!batch->tensors->reserve(out_count)) return too_many(op);
    if (inputs == nullptr && input_count != 0) return null_data(op, "the operands");
    std::vector<Tensor> operands(input_count);
    for (std::size_t i = 0; i < input_count; ++i) {
      if (Error e = batch->find(op, inputs[i], operands[i])) return e;
    }
    Error error;
    const std::vector<Tensor> made = body(batch->batch, Span<const Tensor>(operands), error);
    for (std::size_t i = 0; i < std::min(made.size(), out_count); ++i) {
      if (made[i].valid()) out[i] = batch->tensors->add(made[i]);
    }
    return error;
  });
  return to_c(batch->first_error().code);
}

template <class T>
brontes_tensor upload(brontes_batch* batch, const char* op, const T* data, std::size_t count, const std::uint64_t* dims,
                      std::size_t rank) {
  return record(batch, op, [&](Batch& to, Error& error) -> Tensor {
    Shape shape;
    if ((error = shape_of(op, dims, rank, shape))) return {};
    return to.upload(Span<const T>(data, count), shape);
  });
}

template <class T>
brontes_tensor upload_f16(brontes_batch* batch, const T* data, std::size_t count, const std::uint64_t* dims,
                          std::size_t rank) {
  return record(batch, "upload_f16", [&](Batch& to, Error& error) -> Tensor {
    Shape shape;
    if ((error = shape_of("upload_f16", dims, rank, shape))) return {};
    return to.upload_f16(Span<const T>(data, count), shape);
  });
}

/// A reduction over axes.
using Reduction = Tensor (Batch::*)(Tensor, Axes, bool);

brontes_tensor reduce(brontes_batch* batch, const char* op, Reduction reduction, brontes_tensor number,
                      const std::int64_t* axes, std::size_t count, int keep_dims) {
  return record(
      batch, op,
      [&](Batch& to, const Tensor& x, Error& error) -> Tensor {
        Axes over;
        if ((error = axes_of(op, axes, count, over))) return {};
        return (to.*reduction)(x, over, keep_dims != 0);
      },
      number);
}

/// An op on one tensor and a shape.
template <class Body>
brontes_tensor reshaped(brontes_batch* batch, const char* op, brontes_tensor number, const std::uint64_t* dims,
                        std::size_t rank, Body body) {
  return record(
      batch, op,
      [&](Batch& to, const Tensor& x, Error& error) -> Tensor {
        Shape shape;
        if ((error = shape_of(op, dims, rank, shape))) return {};
        return body(to, x, shape);
      },
      number);
}

Error specs_of(const char* op, const brontes_value_spec* given, std::size_t count, std::vector<ValueSpec>& to) {
  if (given == nullptr && count != 0) return null_data(op, "the outputs");
  for (std::size_t i = 0; i < count; ++i) {
    Shape shape;
    DType type = DType::f32;
    if (Error e = shape_of(op, given[i].dims, given[i].rank, shape)) return e;
    if (Error e = set(type, given[i].dtype, op, "brontes_dtype")) return e;
    to.emplace_back(shape, type);
  }
  return {};
}

std::vector<Tensor> call_kernel(Batch& to, const brontes_kernel* kernel, Span<const Tensor> inputs,
                                const brontes_value_spec* outputs, std::size_t output_count,
                                const std::uint32_t* groups, const void* push, std::size_t push_bytes, Error& error) {
  std::vector<ValueSpec> specs;
  if ((error = check("call", kernel, "kernel")) || (error = specs_of("call", outputs, output_count, specs))) return {};
  if (groups == nullptr) {
    error = null_data("call", "the groups");
    return {};
  }
  if (push == nullptr && push_bytes != 0) {
    error = null_data("call", "push constants");
    return {};
  }
  return to.call_all(kernel->kernel, inputs, specs, {groups[0], groups[1], groups[2]},
                     {static_cast<const std::byte*>(push), push_bytes});
}

/// store() to all of a buffer, or to a slice.
brontes_status store(brontes_batch* batch, brontes_tensor x, const brontes_buffer* destination,
                     const brontes_range* ranges, std::size_t count, bool slice) {
  return record_all(
      batch, "store", &x, 1, nullptr, 0,
      [&](Batch& to, Span<const Tensor> operands, Error& error) -> std::vector<Tensor> {
        Ranges chosen;
        if ((error = check("store", destination, "buffer")) || (error = ranges_of("store", ranges, count, chosen))) {
          return {};
        }
        if (slice) {
          to.store(operands[0], destination->buffer, chosen.span());
        } else {
          to.store(operands[0], destination->buffer);
        }
        return {};
      });
}

}  // namespace

// --- Inputs and outputs

brontes_tensor brontes_upload(brontes_batch* batch, const float* data, size_t count, const uint64_t* dims,
                              size_t rank) {
  return upload(batch, "upload", data, count, dims, rank);
}

brontes_tensor brontes_upload_i32(brontes_batch* batch, const int32_t* data, size_t count, const uint64_t* dims,
                                  size_t rank) {
  return upload(batch, "upload_i32", data, count, dims, rank);
}

brontes_tensor brontes_upload_f16(brontes_batch* batch, const float* data, size_t count, const uint64_t* dims,
                                  size_t rank) {
  return upload_f16(batch, data, count, dims, rank);
}

brontes_tensor brontes_upload_f16_bits(brontes_batch* batch, const uint16_t* data, size_t count, const uint64_t* dims,
                                       size_t rank) {
  return upload_f16(batch, data, count, dims, rank);
}

brontes_tensor brontes_import_buffer(brontes_batch* batch, const brontes_buffer* buffer) {
  return record(batch, "import_buffer", [&](Batch& to, Error& error) -> Tensor {
    if ((error = check("import_buffer", buffer, "buffer"))) return {};
    return to.import_buffer(buffer->buffer);
  });
}

brontes_tensor brontes_import_buffer_slice(brontes_batch* batch, const brontes_buffer* buffer,
                                           const brontes_range* ranges, size_t range_count) {
  return record(batch, "import_buffer", [&](Batch& to, Error& error) -> Tensor {
    Ranges chosen;
    if ((error = check("import_buffer", buffer, "buffer")) ||
        (error = ranges_of("import_buffer", ranges, range_count, chosen))) {
      return {};
    }
    return to.import_buffer(buffer->buffer, chosen.span());
  });
}

brontes_tensor brontes_import_weight(brontes_batch* batch, const brontes_weight* weight) {
  return record(batch, "import_weight", [&](Batch& to, Error& error) -> Tensor {
    if ((error = check("import_weight", weight, "weight"))) return {};
    return to.import_weight(*weight->weight);
  });
}

brontes_tensor brontes_fill(brontes_batch* batch, float value, const uint64_t* dims, size_t rank) {
  return record(batch, "fill", [&](Batch& to, Error& error) -> Tensor {
    Shape shape;
    if ((error = shape_of("fill", dims, rank, shape))) return {};
    return to.fill(value, shape);
  });
}

brontes_tensor brontes_fill_i32(brontes_batch* batch, int32_t value, const uint64_t* dims, size_t rank) {
  return record(batch, "fill_i32", [&](Batch& to, Error& error) -> Tensor {
    Shape shape;
    if ((error = shape_of("fill_i32", dims, rank, shape))) return {};
    return to.fill_i32(value, shape);
  });
}

brontes_status brontes_store(brontes_batch* batch, brontes_tensor x, const brontes_buffer* destination) {
  return store(batch, x, destination, nullptr, 0, false);
}

brontes_status brontes_store_slice(brontes_batch* batch, brontes_tensor x, const brontes_buffer* destination,
                                   const brontes_range* ranges, size_t range_count) {
  return store(batch, x, destination, ranges, range_count, true);
}

brontes_tensor brontes_keep(brontes_batch* batch, brontes_tensor x) {
  bool kept = false;
  static_cast<void>(record(
      batch, "keep",
      [&](Batch& to, const Tensor& t, Error&) -> Tensor {
        kept = to.keep(t).valid();
        return {};
      },
      x));
  return kept ? x : BRONTES_NO_TENSOR;
}

// --- Elementwise ops: one function per row of the table, as their methods of Batch. Rows for i32 belong to the
// function of the row for f32. A row without its declaration in brontes.h is a warning, -Wmissing-declarations.

#define BRONTES_FUNCTION_none_f_1(op)
#define BRONTES_FUNCTION_none_i_1(op)
#define BRONTES_FUNCTION_i_i_0(op)
#define BRONTES_FUNCTION_ii_i_0(op)
#define BRONTES_FUNCTION_ii_m_0(op)
#define BRONTES_FUNCTION_f_i_0(op)
#define BRONTES_FUNCTION_f_m_0(op)
#define BRONTES_FUNCTION_i_f_0(op)
#define BRONTES_FUNCTION_i_m_0(op)
#define BRONTES_FUNCTION_m_f_0(op)
#define BRONTES_FUNCTION_m_i_0(op)
#define BRONTES_FUNCTION_f_h_0(op)
#define BRONTES_FUNCTION_h_f_0(op)
#define BRONTES_FUNCTION_f_f_0(op)                                                   \
  brontes_tensor brontes_##op(brontes_batch* batch, brontes_tensor x) {              \
    return record(                                                                   \
        batch, #op, [](Batch& to, const Tensor& a, Error&) { return to.op(a); }, x); \
  }
#define BRONTES_FUNCTION_f_f_1(op)                                                       \
  brontes_tensor brontes_##op(brontes_batch* batch, brontes_tensor x, float p) {         \
    return record(                                                                       \
        batch, #op, [p](Batch& to, const Tensor& a, Error&) { return to.op(a, p); }, x); \
  }
#define BRONTES_FUNCTION_f_f_2(op)                                                             \
  brontes_tensor brontes_##op(brontes_batch* batch, brontes_tensor x, float p, float q) {      \
    return record(                                                                             \
        batch, #op, [p, q](Batch& to, const Tensor& a, Error&) { return to.op(a, p, q); }, x); \
  }
#define BRONTES_FUNCTION_ff_f_0(op)                                                                         \
  brontes_tensor brontes_##op(brontes_batch* batch, brontes_tensor x, brontes_tensor y) {                   \
    return record(                                                                                          \
        batch, #op, [](Batch& to, const Tensor& a, const Tensor& b, Error&) { return to.op(a, b); }, x, y); \
  }
#define BRONTES_FUNCTION_mtt_t_0(op)                                                                                   \
  brontes_tensor brontes_##op(brontes_batch* batch, brontes_tensor x, brontes_tensor y, brontes_tensor z) {            \
    return record(                                                                                                     \
        batch, #op,                                                                                                    \
        [](Batch& to, const Tensor& a, const Tensor& b, const Tensor& c, Error&) { return to.op(a, b, c); }, x, y, z); \
  }
#define BRONTES_FUNCTION_t_t_0(op) BRONTES_FUNCTION_f_f_0(op)
#define BRONTES_FUNCTION_m_m_0(op) BRONTES_FUNCTION_f_f_0(op)
#define BRONTES_FUNCTION_ff_m_0(op) BRONTES_FUNCTION_ff_f_0(op)
#define BRONTES_FUNCTION_mm_m_0(op) BRONTES_FUNCTION_ff_f_0(op)
#define BRONTES_OP(name, code, arity, scalars, types, formula) BRONTES_FUNCTION_##types##_##scalars(name)
#include "elementwise.def"
#undef BRONTES_OP

brontes_tensor brontes_cast(brontes_batch* batch, brontes_tensor x, brontes_dtype dtype) {
  return record(
      batch, "cast",
      [&](Batch& to, const Tensor& a, Error& error) -> Tensor {
        DType type = DType::f32;
        if ((error = set(type, dtype, "cast", "brontes_dtype"))) return {};
        return to.cast(a, type);
      },
      x);
}

// --- Views

brontes_tensor brontes_reshape(brontes_batch* batch, brontes_tensor x, const uint64_t* dims, size_t rank) {
  return reshaped(batch, "reshape", x, dims, rank,
                  [](Batch& to, Tensor a, Shape shape) { return to.reshape(a, shape); });
}

brontes_tensor brontes_expand(brontes_batch* batch, brontes_tensor x, const uint64_t* dims, size_t rank) {
  return reshaped(batch, "expand", x, dims, rank, [](Batch& to, Tensor a, Shape shape) { return to.expand(a, shape); });
}

brontes_tensor brontes_flatten(brontes_batch* batch, brontes_tensor x) {
  return record(
      batch, "flatten", [](Batch& to, const Tensor& a, Error&) { return to.flatten(a); }, x);
}

brontes_tensor brontes_squeeze(brontes_batch* batch, brontes_tensor x) {
  return record(
      batch, "squeeze", [](Batch& to, const Tensor& a, Error&) { return to.squeeze(a); }, x);
}

brontes_tensor brontes_unsqueeze(brontes_batch* batch, brontes_tensor x, int64_t axis) {
  return record(
      batch, "unsqueeze", [axis](Batch& to, const Tensor& a, Error&) { return to.unsqueeze(a, axis); }, x);
}

brontes_tensor brontes_slice(brontes_batch* batch, brontes_tensor x, const brontes_range* ranges, size_t range_count) {
  return record(
      batch, "slice",
      [&](Batch& to, const Tensor& a, Error& error) -> Tensor {
        Ranges chosen;
        if ((error = ranges_of("slice", ranges, range_count, chosen))) return {};
        return to.slice(a, chosen.span());
      },
      x);
}

brontes_tensor brontes_slice_axis(brontes_batch* batch, brontes_tensor x, int64_t axis, int64_t begin, int64_t end,
                                  int64_t step) {
  return record(
      batch, "slice",
      [&](Batch& to, const Tensor& a, Error&) {
        return to.slice(a, axis, Range{begin, end, step});
      },
      x);
}

brontes_status brontes_split(brontes_batch* batch, brontes_tensor x, size_t parts, int64_t axis, brontes_tensor* out) {
  return record_all(batch, "split", &x, 1, out, parts,
                    [&](Batch& to, Span<const Tensor> operands, Error&) { return to.split(operands[0], parts, axis); });
}

brontes_tensor brontes_permute(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count) {
  return record(
      batch, "permute",
      [&](Batch& to, const Tensor& a, Error& error) -> Tensor {
        Axes order;
        if ((error = axes_of("permute", axes, axis_count, order))) return {};
        return to.permute(a, order);
      },
      x);
}

brontes_tensor brontes_transpose(brontes_batch* batch, brontes_tensor x) {
  return record(
      batch, "transpose", [](Batch& to, const Tensor& a, Error&) { return to.transpose(a); }, x);
}

brontes_tensor brontes_concat(brontes_batch* batch, const brontes_tensor* parts, size_t part_count, int64_t axis) {
  brontes_tensor result = BRONTES_NO_TENSOR;
  record_all(batch, "concat", parts, part_count, &result, 1, [&](Batch& to, Span<const Tensor> operands, Error&) {
    return std::vector<Tensor>{to.concat(operands, axis)};
  });
  return result;
}

// --- Reductions

#define BRONTES_REDUCTION(function, method)                                                                \
  brontes_tensor function(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count,  \
                          int keep_dims) {                                                                 \
    return reduce(batch, #method, static_cast<Reduction>(&Batch::method), x, axes, axis_count, keep_dims); \
  }
BRONTES_REDUCTION(brontes_sum, sum)
BRONTES_REDUCTION(brontes_mean, mean)
BRONTES_REDUCTION(brontes_prod, prod)
BRONTES_REDUCTION(brontes_reduce_max, max)
BRONTES_REDUCTION(brontes_reduce_min, min)
BRONTES_REDUCTION(brontes_sum_of_squares, sum_of_squares)
BRONTES_REDUCTION(brontes_l1_norm, l1_norm)
BRONTES_REDUCTION(brontes_l2_norm, l2_norm)
BRONTES_REDUCTION(brontes_logsumexp, logsumexp)
BRONTES_REDUCTION(brontes_any, any)
BRONTES_REDUCTION(brontes_all, all)
#undef BRONTES_REDUCTION

brontes_tensor brontes_dot(brontes_batch* batch, brontes_tensor x, brontes_tensor y) {
  return record(
      batch, "dot", [](Batch& to, const Tensor& a, const Tensor& b, Error&) { return to.dot(a, b); }, x, y);
}

brontes_tensor brontes_argmax(brontes_batch* batch, brontes_tensor x, int64_t axis, int keep_dim) {
  return record(
      batch, "argmax", [&](Batch& to, const Tensor& a, Error&) { return to.argmax(a, axis, keep_dim != 0); }, x);
}

brontes_tensor brontes_argmin(brontes_batch* batch, brontes_tensor x, int64_t axis, int keep_dim) {
  return record(
      batch, "argmin", [&](Batch& to, const Tensor& a, Error&) { return to.argmin(a, axis, keep_dim != 0); }, x);
}

// --- Rows

brontes_tensor brontes_gather(brontes_batch* batch, brontes_tensor table, brontes_tensor index) {
  return record(
      batch, "gather", [](Batch& to, const Tensor& a, const Tensor& b, Error&) { return to.gather(a, b); }, table,
      index);
}

brontes_tensor brontes_update_rows(brontes_batch* batch, brontes_tensor x, brontes_tensor index, brontes_tensor rows) {
  return record(
      batch, "update_rows",
      [](Batch& to, const Tensor& a, const Tensor& b, const Tensor& c, Error&) { return to.update_rows(a, b, c); }, x,
      index, rows);
}

brontes_tensor brontes_softmax(brontes_batch* batch, brontes_tensor x, int64_t axis) {
  return record(
      batch, "softmax", [axis](Batch& to, const Tensor& a, Error&) { return to.softmax(a, axis); }, x);
}

brontes_tensor brontes_log_softmax(brontes_batch* batch, brontes_tensor x, int64_t axis) {
  return record(
      batch, "log_softmax", [axis](Batch& to, const Tensor& a, Error&) { return to.log_softmax(a, axis); }, x);
}

brontes_tensor brontes_layer_norm(brontes_batch* batch, brontes_tensor x, brontes_tensor weight, brontes_tensor bias,
                                  float epsilon) {
  return record(
      batch, "layer_norm",
      [epsilon](Batch& to, const Tensor& a, const Tensor& w, const Tensor& b, Error&) {
        return to.layer_norm(a, w, b, epsilon);
      },
      x, weight, bias);
}

brontes_tensor brontes_layer_norm_plain(brontes_batch* batch, brontes_tensor x, float epsilon) {
  return record(
      batch, "layer_norm", [epsilon](Batch& to, const Tensor& a, Error&) { return to.layer_norm(a, epsilon); }, x);
}

brontes_tensor brontes_rms_norm(brontes_batch* batch, brontes_tensor x, brontes_tensor weight, float epsilon) {
  return record(
      batch, "rms_norm",
      [epsilon](Batch& to, const Tensor& a, const Tensor& w, Error&) { return to.rms_norm(a, w, epsilon); }, x, weight);
}

brontes_tensor brontes_rms_norm_plain(brontes_batch* batch, brontes_tensor x, float epsilon) {
  return record(
      batch, "rms_norm", [epsilon](Batch& to, const Tensor& a, Error&) { return to.rms_norm(a, epsilon); }, x);
}

brontes_tensor brontes_cumsum(brontes_batch* batch, brontes_tensor x, int64_t axis) {
  return record(
      batch, "cumsum", [axis](Batch& to, const Tensor& a, Error&) { return to.cumsum(a, axis); }, x);
}

// --- Products and kernels

brontes_tensor brontes_matmul(brontes_batch* batch, brontes_tensor a, brontes_tensor b,
                              const brontes_matmul_options* options) {
  return record(
      batch, "matmul",
      [&](Batch& to, const Tensor& left, const Tensor& right, Error& error) -> Tensor {
        MatmulOptions with;
        if ((error = matmul_options("matmul", options, with))) return {};
        return to.matmul(left, right, with);
      },
      a, b);
}

brontes_tensor brontes_matmul_flat(brontes_batch* batch, brontes_tensor a, brontes_tensor b, uint64_t m, uint64_t k,
                                   uint64_t n, const brontes_matmul_options* options) {
  return record(
      batch, "matmul",
      [&](Batch& to, const Tensor& left, const Tensor& right, Error& error) -> Tensor {
        MatmulOptions with;
        if ((error = matmul_options("matmul", options, with))) return {};
        return to.matmul(left, right, m, k, n, with);
      },
      a, b);
}

brontes_tensor brontes_linear(brontes_batch* batch, brontes_tensor x, brontes_tensor w) {
  return record(
      batch, "linear", [](Batch& to, const Tensor& a, const Tensor& b, Error&) { return to.linear(a, b); }, x, w);
}

brontes_tensor brontes_linear_bias(brontes_batch* batch, brontes_tensor x, brontes_tensor w, brontes_tensor bias) {
  return record(
      batch, "linear",
      [](Batch& to, const Tensor& a, const Tensor& b, const Tensor& c, Error&) { return to.linear(a, b, c); }, x, w,
      bias);
}

brontes_tensor brontes_call(brontes_batch* batch, const brontes_kernel* kernel, const brontes_tensor* inputs,
                            size_t input_count, const brontes_value_spec* output, const uint32_t groups[3],
                            const void* push, size_t push_bytes) {
  brontes_tensor result = BRONTES_NO_TENSOR;
  brontes_call_all(batch, kernel, inputs, input_count, output, 1, groups, push, push_bytes, &result);
  return result;
}

brontes_status brontes_call_all(brontes_batch* batch, const brontes_kernel* kernel, const brontes_tensor* inputs,
                                size_t input_count, const brontes_value_spec* outputs, size_t output_count,
                                const uint32_t groups[3], const void* push, size_t push_bytes, brontes_tensor* out) {
  return record_all(batch, "call", inputs, input_count, out, output_count,
                    [&](Batch& to, Span<const Tensor> operands, Error& error) {
                      return call_kernel(to, kernel, operands, outputs, output_count, groups, push, push_bytes, error);
                    });
}
