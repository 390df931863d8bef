#include "op_case.hpp"
#include "row_shapes.hpp"

namespace brontes::cases {
namespace {

constexpr float epsilon = 1e-5f;

// Around `middle`, which may be large against the deviation.
OpCase norm(bool rms, bool affine, const Shape& shape, float middle = 0) {
  OpCase c;
  c.name = std::string(rms ? "norm/rms_norm/" : "norm/layer_norm/") + (affine ? "affine/" : "plain/") + dims(shape);
  if (middle != 0) c.name += "/around " + std::to_string(static_cast<int>(middle));
  c.operands.push_back({shape, middle - 2, middle + 2});
  const Shape last(shape[shape.rank() - 1]);
  if (affine) c.operands.push_back({last});
  if (affine && !rms) c.operands.push_back({last});
  c.record = [=](Batch& batch, const std::vector<Tensor>& in) {
    if (rms) return affine ? batch.rms_norm(in[0], in[1], epsilon) : batch.rms_norm(in[0], epsilon);
    return affine ? batch.layer_norm(in[0], in[1], in[2], epsilon) : batch.layer_norm(in[0], epsilon);
  };
  c.reference = [=](const Data& in) {
    return reference::norm(doubles(in[0]), shape, in.size() > 1 ? doubles(in[1]) : reference::Values(),
                           in.size() > 2 ? doubles(in[2]) : reference::Values(), double{epsilon}, rms);
  };
  // Squares of the largest numbers overflow; tests/device/row_ops.cpp has NaN and infinities.
  c.special_values = false;
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const bool rms : {false, true}) {
    for (const RowCase& row : row_cases()) cases.push_back(norm(rms, true, row.shape));
    for (const Shape& shape : {Shape(3, 1), Shape(5, 6), Shape(2, 1000), Shape(3, 40000)}) {
      cases.push_back(norm(rms, false, shape));
    }
    for (const Shape& shape : {Shape(3, 7), Shape(2, 256), Shape(2, 4097), Shape(100003)}) {
      cases.push_back(norm(rms, true, shape, 1000));
    }
  }
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  const Shape shape(1024, 1024);
  std::vector<OpBenchmark> all;
  for (const bool rms : {false, true})
    all.push_back({norm(rms, true, shape), 8.0 * static_cast<double>(shape.count()), 0});
  return all;
}

}  // namespace

const CaseRoom norm_cases{all, benchmarks};

}  // namespace brontes::cases
