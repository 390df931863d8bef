// The matmul selector: a pure function from shape, layout and device traits to a kernel and its
// parameters, which can say why.
#pragma once

#include "ops/matmul_kernels.hpp"
#include "plan/traits.hpp"
#include "record/graph.hpp"

#include <brontes/error.hpp>
#include <brontes/matmul.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace brontes::plan {

/// The matrices of a batch, as the kernels number them. Leading dims that lie side by side and that the same operands
/// have are one block.
struct MatmulBatch {
  static constexpr std::uint32_t of_a = 1, of_b = 2;
  static constexpr std::size_t max_blocks = 6;

  std::uint32_t count = 1;    // matrices of the result
  std::uint32_t pattern = 0;  // two bits per block, the innermost first: of_a, of_b or both. 0 for a single product
  std::array<std::uint32_t, max_blocks - 1> blocks{};  // extents of all blocks but the outermost

  /// Of of_a or of_b.
  std::uint64_t matrices(std::uint32_t operand) const noexcept;

  friend bool operator==(const MatmulBatch&, const MatmulBatch&) = default;
};
static_assert(Shape::max_rank <= MatmulBatch::max_blocks + 2);

/// What a product computes, by the shapes of its operands.
struct MatmulSizes {
  std::uint64_t m, k, n;
  MatmulBatch batch;
  Shape shape;  // of the result
};

/// Leading dims broadcast as in numpy. Those of A that meet the same matrix of B are part of m, if no others lie
/// between.
Result<MatmulSizes> matmul_sizes(const Shape& a, const Shape& b, Layout layout);

struct MatmulAttributes {
  std::uint64_t m, k, n;
  MatmulBatch batch;
  float alpha;
  std::uint32_t variant;
  Layout layout;
  MatmulKernel kernel;
  Precision precision;
};

extern const record::Op matmul_op;

/// Sizes from the shapes.
Result<record::ValueId> matmul(record::Graph& graph, record::ValueId a, record::ValueId b,
                               const MatmulOptions& options);
Result<record::ValueId> matmul(record::Graph& graph, record::ValueId a, record::ValueId b, std::uint64_t m,
                               std::uint64_t k, std::uint64_t n, const MatmulOptions& options);

constexpr MatmulLayout kernel_layout(Layout layout) noexcept {
  return layout == Layout::nk ? MatmulLayout::nk : MatmulLayout::kn;
}

struct MatmulProblem {
  std::uint64_t m, k, n;
  Layout layout = Layout::kn;
  DType type = DType::f32;       // of B
  bool batch_invariant = false;  // as in BatchOptions
  std::uint64_t batch = 1;       // products in one dispatch, and how many matrices their operands have
  std::uint64_t a_matrices = 1, b_matrices = 1;
  bool f16_inputs = false;  // operands may be rounded to f16

  void set(const MatmulBatch& of) noexcept {
    batch = of.count;
    a_matrices = of.matrices(MatmulBatch::of_a);
    b_matrices = of.matrices(MatmulBatch::of_b);
  }
};

/// Of the kernel that lays operands out for panels.
constexpr std::uint32_t matmul_pack_group_size(const Traits& traits) noexcept {
  return traits.max_group_invocations < 64 ? traits.max_group_invocations : 64;
}

/// Its workgroups for `matrices` of `count` rows of k, or columns of B[k,n].
constexpr std::uint64_t matmul_pack_groups(const Traits& traits, MatmulLayout layout, std::uint64_t matrices,
                                           std::uint64_t count, std::uint64_t k, std::uint32_t height) noexcept {
  const std::uint32_t group_size = matmul_pack_group_size(traits);
  return (matrices * matmul_pack_invocations(layout, count, k, height) + group_size - 1) / group_size;
}

struct TunedMatmul;

/// A kernel with every number it needs.
struct MatmulSelection {
  MatmulKernel kernel = MatmulKernel::naive;
  const char* reason = "";
  const TunedMatmul* tuned = nullptr;  // the measurement that spoke for this shape, of Traits::tuning
  // naive
  std::uint32_t group_x = 0, group_y = 0;
  // gemv
  MatmulGemvShape gemv{};
  // subgroup and panel
  MatmulSubgroupShape subgroup{};
  // tiled
  MatmulTiledShape tiles{};
  // coopmat
  MatmulCoopmatShape coopmat{};

  std::uint32_t vectorized = 0;
  MatmulTile tile{};          // of C, per workgroup; with `subgroup` and `panel` per subgroup
  std::uint64_t groups = 0;   // of one dispatch over one slice of k, for all matrices of a batch
  std::uint64_t k_chunk = 0;  // of k, per dispatch; whole vec4s, of floats or packed weights, unless it is all of k
  // Of k, side by side in one dispatch, and what each of them has of it. Where there are several, each
  // writes a C of its own, and the combine kernel adds these up.
  std::uint32_t slices = 1;
  std::uint64_t k_slice = 0;
};

/// A choice made elsewhere: by a test, a benchmark, or a measurement.
struct MatmulForce {
  MatmulKernel kernel = MatmulKernel::automatic;
  std::size_t variant = 0;  // 1 .. matmul_variants(), or 0 for the one that suits the shape

  MatmulForce() = default;
  MatmulForce(MatmulKernel which, std::size_t of_them = 0) : kernel(which), variant(of_them) {}

  friend bool operator==(const MatmulForce&, const MatmulForce&) = default;
};

/// `forced` other than automatic is obeyed wherever the kernel can do the shape; a device too small
/// for it gets Errc::unsupported, or Errc::limit_exceeded where its operands are what is too large. Else what was
/// measured on the device counts, where it can be used, and then the shipped defaults.
Result<MatmulSelection> select_matmul(const MatmulProblem& problem, const Traits& traits, MatmulForce forced = {});

/// For explain_matmul(): also covers products with nothing to compute.
MatmulChoice explain(const MatmulProblem& problem, const Traits& traits, MatmulForce forced);

}  // namespace brontes::plan
