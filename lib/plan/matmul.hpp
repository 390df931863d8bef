// The matmul selector: a pure function from shape, layout and device traits to a kernel and its
// parameters, which can say why.
#pragma once

#include "plan/params.hpp"
#include "plan/traits.hpp"

#include <brontes/error.hpp>
#include <brontes/matmul.hpp>

#include <cstdint>
#include <string>

namespace brontes::plan {

struct MatmulProblem {
  std::uint64_t m, k, n;
  Layout layout = Layout::kn;
};

/// A kernel with every number it needs.
struct MatmulSelection {
  MatmulKernel kernel = MatmulKernel::naive;
  const char* reason = "";
  // naive
  std::uint32_t group_x = 0, group_y = 0;
  // gemv
  std::uint32_t group_size = 0, rows = 0, slices = 0;
  // tiled
  MatmulTiledShape tiles{};

  std::uint32_t vectorized = 0;
  MatmulTile tile{};          // of C, per workgroup
  std::uint64_t groups = 0;   // of one dispatch
  std::uint64_t k_chunk = 0;  // of k, per dispatch; a multiple of 4 unless it is all of k
};

/// `forced` other than automatic is obeyed wherever the kernel can do the shape; a device too small
/// for it gets Errc::unsupported.
Result<MatmulSelection> select_matmul(const MatmulProblem& problem, const Traits& traits,
                                      MatmulKernel forced = MatmulKernel::automatic);

/// For explain_matmul(): also covers products with nothing to compute.
MatmulChoice explain(const MatmulProblem& problem, const Traits& traits, MatmulKernel forced);

}  // namespace brontes::plan
