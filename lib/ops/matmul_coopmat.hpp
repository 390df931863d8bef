// Products by matrix units: which devices use them unasked, and the tiles for each size of matrices.
#pragma once

#include "ops/matmul.hpp"

#include <cstddef>
#include <cstdint>

namespace brontes::plan {

/// Tile sets for each size of matrices, the largest first.
inline constexpr std::uint32_t coopmat_variants = 3;

/// A variant, or with 0 the largest of which there are `enough`, or else the smallest. Errors: invalid_argument where
/// the problem does not allow f16, unsupported where this build, the device or the variant cannot do it.
Result<MatmulCoopmatShape> coopmat_shape(const MatmulProblem& problem, const Traits& traits, std::uint64_t enough,
                                         std::size_t variant);

/// Why the selector does not take matrix units unasked, as the end of a sentence; null if it does.
const char* coopmat_refusal(const MatmulProblem& problem, const Traits& traits) noexcept;

}  // namespace brontes::plan
