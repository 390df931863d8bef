// What the shapes of two operands make of a product: its sizes, and the matrices of a batch.
#include "ops/matmul.hpp"

#include "record/shape.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace brontes::plan {
namespace {

using Dims = std::array<std::uint64_t, Shape::max_rank>;

// Dims before the last two, counted from the innermost; 1 where there are no more.
std::uint64_t leading(const Shape& shape, std::size_t index) {
  return index + 2 < shape.rank() ? shape[shape.rank() - 3 - index] : 1;
}

std::string operands_text(const Shape& a, const Shape& b) {
  return "matmul: operands " + to_string(a) + " and " + to_string(b);
}

Error overflow(const Shape& a, const Shape& b) {
  return Error(Errc::size_overflow, operands_text(a, b) + ": their product does not fit in 64 bits");
}

// What is past 32 bits belongs to a product without elements, of which nothing is computed.
std::uint32_t clamped(std::uint64_t extent) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

std::uint64_t MatmulBatch::matrices(std::uint32_t operand) const noexcept {
  std::uint64_t all = 1;
  std::uint64_t outermost = count;
  for (std::uint32_t i = 0; pattern >> 2 * i != 0; ++i) {
    const bool last = pattern >> (2 * i + 2) == 0;
    const std::uint64_t extent = last ? outermost : blocks[i];
    if ((pattern >> 2 * i & operand) != 0) all *= extent;
    if (!last && extent != 0) outermost /= extent;
  }
  return all;
}

Result<MatmulSizes> matmul_sizes(const Shape& a, const Shape& b, Layout layout) {
  const bool transposed = layout == Layout::nk;
  const std::size_t ra = a.rank();
  const std::size_t rb = b.rank();
  if (!a.valid() || !b.valid() || std::min(ra, rb) == 0 || (std::min(ra, rb) == 1 && std::max(ra, rb) > 2)) {
    return Error(Errc::shape_mismatch, operands_text(a, b) +
                                           ": a single dim goes with one or two; expected two or more dims each, "
                                           "[..., M, K] and " +
                                           (transposed ? "[..., N, K]" : "[..., K, N]"));
  }
  MatmulSizes sizes{};
  sizes.m = ra == 1 ? 1 : a[ra - 2];
  sizes.k = a[ra - 1];
  // A 1-D right operand is a column [K, 1], which is the same memory as a weight [1, K].
  const std::uint64_t kb = rb == 1 || transposed ? b[rb - 1] : b[rb - 2];
  sizes.n = rb == 1 ? 1 : transposed ? b[rb - 2] : b[rb - 1];
  if (sizes.k != kb) {
    return Error(Errc::shape_mismatch, operands_text(a, b) + (transposed ? " (as [N, K])" : " (as [K, N])") +
                                           ": the inner sizes " + std::to_string(sizes.k) + " and " +
                                           std::to_string(kb) + " differ");
  }

  const std::size_t rank = std::max<std::size_t>({ra, rb, 2});
  Dims dims{};
  dims[rank - 2] = sizes.m;
  dims[rank - 1] = sizes.n;
  std::array<std::uint64_t, MatmulBatch::max_blocks> extents{};
  std::size_t blocks = 0;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::uint64_t ea = leading(a, i);
    const std::uint64_t eb = leading(b, i);
    if (ea != eb && ea != 1 && eb != 1) {
      return Error(Errc::shape_mismatch, operands_text(a, b) + ": the leading dims " + std::to_string(ea) + " and " +
                                             std::to_string(eb) + " differ; expected the same, or 1 to repeat");
    }
    const std::uint64_t extent = ea == 1 ? eb : ea;
    dims[rank - 3 - i] = extent;
    if (extent == 1) continue;
    const std::uint32_t who = (ea != 1 ? MatmulBatch::of_a : 0) | (eb != 1 ? MatmulBatch::of_b : 0);
    // Matrices of A, side by side, that meet the same matrix of B are one taller matrix.
    const bool taller = who == MatmulBatch::of_a && blocks == 0;
    const bool same = blocks != 0 && (sizes.batch.pattern >> 2 * (blocks - 1)) == who;
    if (!taller && !same) {
      sizes.batch.pattern |= who << 2 * blocks;
      extents[blocks++] = 1;
    }
    const auto product = record::product(taller ? sizes.m : extents[blocks - 1], extent);
    const auto all = taller ? count : record::product(count, extent);
    if (!product || !all) return overflow(a, b);
    (taller ? sizes.m : extents[blocks - 1]) = *product;
    count = *all;
  }
  sizes.batch.count = clamped(count);
  for (std::size_t i = 0; i + 1 < blocks; ++i) sizes.batch.blocks[i] = clamped(extents[i]);
  sizes.shape = Shape::of({dims.data(), rank});
  return sizes;
}

}  // namespace brontes::plan
