// Few shapes: tests/device/matmul*.cpp sweep the kernels and their variants.
#include "op_case.hpp"

namespace brontes::cases {
namespace {

OpCase product(std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout, float alpha = 1) {
  OpCase c;
  c.name = "matmul/" + dims(Shape(m, k, n)) + "/" + to_string(layout) + (alpha == 1 ? "" : "/alpha");
  c.operands = {{Shape(m, k)}, {layout == Layout::nk ? Shape(n, k) : Shape(k, n)}};
  MatmulOptions options;
  options.layout = layout;
  options.alpha = alpha;
  c.record = [options](Batch& batch, const std::vector<Tensor>& in) { return batch.matmul(in[0], in[1], options); };
  c.reference = [=](const Data& in) {
    const MatmulReference reference = matmul(in[0], in[1], m, k, n, layout, alpha);
    Expected expected{reference.product, reference.magnitude};
    for (double& allowed : expected.allowed) allowed *= matmul_bound(k, false);
    return expected;
  };
  c.special_values = false;  // products of large numbers overflow or not by the order of their sum
  return c;
}

// Leading dims of the operands, by what numpy makes of them.
OpCase batched(const Shape& a, const Shape& b, Layout layout, float alpha = 1) {
  OpCase c;
  c.name = "matmul/" + dims(a) + "-by-" + dims(b) + "/" + to_string(layout) + (alpha == 1 ? "" : "/alpha");
  c.operands = {{a}, {b}};
  MatmulOptions options;
  options.layout = layout;
  options.alpha = alpha;
  c.record = [options](Batch& batch, const std::vector<Tensor>& in) { return batch.matmul(in[0], in[1], options); };
  c.reference = [=](const Data& in) {
    const MatmulReference reference = batched_matmul(in[0], a, in[1], b, layout, alpha);
    Expected expected{reference.product, reference.magnitude};
    for (double& allowed : expected.allowed) allowed *= matmul_bound(a[a.rank() - 1], false);
    return expected;
  };
  c.special_values = false;
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (const Shape& s : {Shape(1, 1, 1), Shape(1, 37, 19), Shape(3, 64, 5), Shape(17, 33, 9), Shape(64, 64, 64),
                           Shape(2, 0, 3), Shape(0, 3, 2)}) {
      cases.push_back(product(s[0], s[1], s[2], layout));
    }
    cases.push_back(product(5, 8, 4, layout, -0.5f));
    // The matrices of both operands; those of one of them repeat, as a whole or each; leading dims that are rows.
    const bool nk = layout == Layout::nk;
    cases.push_back(batched({7, 3, 5}, nk ? Shape(7, 9, 5) : Shape(7, 5, 9), layout));
    cases.push_back(batched({2, 3, 17, 33}, nk ? Shape(2, 3, 9, 33) : Shape(2, 3, 33, 9), layout, 0.5f));
    cases.push_back(batched({2, 1, 4, 8}, nk ? Shape(3, 12, 8) : Shape(3, 8, 12), layout));
    cases.push_back(batched({3, 4, 8}, nk ? Shape(2, 1, 12, 8) : Shape(2, 1, 8, 12), layout));
    cases.push_back(batched({6, 5}, nk ? Shape(4, 7, 5) : Shape(4, 5, 7), layout));
    cases.push_back(batched({2, 3, 4, 5}, nk ? Shape(7, 5) : Shape(5, 7), layout));
    cases.push_back(batched({3, 2, 4, 5}, nk ? Shape(3, 1, 7, 5) : Shape(3, 1, 5, 7), layout));
    cases.push_back(batched({2, 0, 3, 5}, nk ? Shape(2, 1, 4, 5) : Shape(2, 1, 5, 4), layout));
    cases.push_back(batched({3, 2, 0}, nk ? Shape(3, 4, 0) : Shape(3, 0, 4), layout));
    cases.push_back(batched({3, 0, 2}, nk ? Shape(3, 4, 2) : Shape(3, 2, 4), layout));
    cases.push_back(batched({40, 1, 16}, nk ? Shape(40, 64, 16) : Shape(40, 16, 64), layout));
  }
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  std::vector<OpBenchmark> all;
  for (const Shape& s : {Shape(1, 1024, 1024), Shape(64, 256, 256)}) {
    const double size = static_cast<double>(s[0] * s[1] * s[2]);
    all.push_back({product(s[0], s[1], s[2], Layout::nk), 4 * static_cast<double>(s[1] * s[2]), 2 * size});
  }
  // Attention: scores, their product with the values, and the scores of one new token.
  auto attention = [&](std::uint64_t heads, std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout) {
    const Shape b = layout == Layout::nk ? Shape(heads, n, k) : Shape(heads, k, n);
    all.push_back({batched(Shape(heads, m, k), b, layout), 4 * static_cast<double>(heads * (m * k + k * n + m * n)),
                   2 * static_cast<double>(heads * m * k * n)});
  };
  attention(32, 128, 64, 128, Layout::nk);
  attention(32, 128, 128, 64, Layout::kn);
  attention(12, 1, 64, 1024, Layout::nk);
  return all;
}

}  // namespace

const CaseRoom matmul_cases{all, benchmarks};

}  // namespace brontes::cases
