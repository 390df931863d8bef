#include <brontes/ops.hpp>

#include "api/guard.hpp"

#include <brontes/batch.hpp>

namespace brontes::ops {
namespace {

// Inputs may be empty, so they carry their shape.
Tensor flat(Batch& batch, Span<const float> data) { return batch.upload(data, Shape(data.size())); }

// Runs what `record` adds to a batch and reads its result.
template <class Record>
Error run(const char* op, const Device& device, Span<float> out, Record record) {
  return guarded(op, [&]() -> Error {
    Batch batch(device);
    const Tensor result = record(batch);
    if (result.valid() && result.size() != out.size()) {
      return Error(Errc::shape_mismatch, std::string(op) + ": the result has " + std::to_string(result.size()) +
                                             " elements, the output " + std::to_string(out.size()));
    }
    if (Error e = batch.execute()) return e;
    return batch.read(result, out);
  });
}

template <class Record>
Result<float> run_scalar(const char* op, const Device& device, Record record) {
  float value = 0;
  if (Error e = run(op, device, {&value, 1}, record)) return e;
  return value;
}

}  // namespace

#define BRONTES_UNARY(op)                                                      \
  Error op(const Device& device, Span<const float> in, Span<float> out) {      \
    return run(#op, device, out, [&](Batch& b) { return b.op(flat(b, in)); }); \
  }
BRONTES_UNARY(relu)
BRONTES_UNARY(neg)
BRONTES_UNARY(abs)
BRONTES_UNARY(exp)
BRONTES_UNARY(log)
BRONTES_UNARY(sqrt)
BRONTES_UNARY(sigmoid)
BRONTES_UNARY(tanh)
BRONTES_UNARY(swish)
BRONTES_UNARY(gelu)
BRONTES_UNARY(gelu_tanh)
#undef BRONTES_UNARY

#define BRONTES_BINARY(op)                                                                    \
  Error op(const Device& device, Span<const float> x, Span<const float> y, Span<float> out) { \
    return run(#op, device, out, [&](Batch& b) { return b.op(flat(b, x), flat(b, y)); });     \
  }
BRONTES_BINARY(add)
BRONTES_BINARY(sub)
BRONTES_BINARY(mul)
BRONTES_BINARY(div)
BRONTES_BINARY(min)
BRONTES_BINARY(max)
#undef BRONTES_BINARY

Error scale(const Device& device, Span<const float> in, float factor, Span<float> out) {
  return run("scale", device, out, [&](Batch& b) { return b.scale(flat(b, in), factor); });
}

Error offset(const Device& device, Span<const float> in, float amount, Span<float> out) {
  return run("offset", device, out, [&](Batch& b) { return b.offset(flat(b, in), amount); });
}

Error clamp(const Device& device, Span<const float> in, float low, float high, Span<float> out) {
  return run("clamp", device, out, [&](Batch& b) { return b.clamp(flat(b, in), low, high); });
}

Result<float> sum(const Device& device, Span<const float> in) {
  return run_scalar("sum", device, [&](Batch& b) { return b.sum(flat(b, in)); });
}

Result<float> dot(const Device& device, Span<const float> x, Span<const float> y) {
  return run_scalar("dot", device, [&](Batch& b) { return b.dot(flat(b, x), flat(b, y)); });
}

Result<float> max(const Device& device, Span<const float> in) {
  return run_scalar("max", device, [&](Batch& b) { return b.max(flat(b, in)); });
}

Result<float> min(const Device& device, Span<const float> in) {
  return run_scalar("min", device, [&](Batch& b) { return b.min(flat(b, in)); });
}

Error matmul(const Device& device, Span<const float> a, Span<const float> b, Span<float> out, std::uint64_t m,
             std::uint64_t k, std::uint64_t n, const MatmulOptions& options) {
  return run("matmul", device, out,
             [&](Batch& batch) { return batch.matmul(flat(batch, a), flat(batch, b), m, k, n, options); });
}

}  // namespace brontes::ops
