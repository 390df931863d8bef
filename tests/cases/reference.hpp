// References in double precision, and how results are compared with them.
#pragma once

#include "elementwise.hpp"

#include <brontes/matmul.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::cases {

/// Reproducible values from [low, high].
std::vector<float> random_values(std::size_t count, float low, float high, std::uint64_t seed);

/// Reproducible whole numbers from [-limit, limit]: sums of their products are exact in f32 as long
/// as they stay below 2^24, whatever the order of summation.
std::vector<float> random_integers(std::size_t count, int limit, std::uint64_t seed);

/// Zero, infinities, NaN, denormals, and numbers at which activations overflow or cancel.
const std::vector<float>& special_values();

/// NaN matches NaN, infinities match by sign, zeros match whatever their sign. Results below the
/// smallest normal number may have been flushed to zero.
bool close(float got, double want, Tolerance tolerance);

/// close() to the reference of the case, where the device may also have flushed denormal operands.
bool close(const ElementwiseCase& c, float got, float x, float y);

/// Empty when got is what the case gives for x (and y) element by element; else where it first is not.
std::string mismatch(const ElementwiseCase& c, Span<const float> got, Span<const float> x, Span<const float> y);

/// The same against numbers already known.
std::string mismatch(Span<const float> got, Span<const float> want);

// Reductions. The tolerance of sum and dot is reduction_tolerance times the sum of magnitudes: an f32
// tree of partial sums, each at most some hundred elements long.
inline constexpr double reduction_tolerance = 0x1p-18;

double sum(Span<const float> x);
double sum_of_magnitudes(Span<const float> x);
double dot(Span<const float> x, Span<const float> y);
double dot_of_magnitudes(Span<const float> x, Span<const float> y);
double maximum(Span<const float> x);  // NaN if any element is
double minimum(Span<const float> x);

// Matmul. The tolerance of one element is matmul_tolerance times the same product of magnitudes.
inline constexpr double matmul_tolerance = 0x1p-20;

struct MatmulReference {
  std::vector<double> product;
  std::vector<double> magnitude;  // the product of |a| and |b|
};
MatmulReference matmul(Span<const float> a, Span<const float> b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                       Layout layout, float alpha = 1);

/// Empty when every element is within tolerance times magnitude of the product.
std::string mismatch(Span<const float> got, const MatmulReference& want, double tolerance);

}  // namespace brontes::cases
