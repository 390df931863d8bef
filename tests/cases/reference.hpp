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

using reference::nearest_half;

/// The nearest numbers that a value of the type can have: whole ones for i32, 0 and 1 for masks.
std::vector<float> as_type(std::vector<float> values, DType type);
/// `count` of them from [low, high], reproducible.
std::vector<float> random_values(std::size_t count, float low, float high, std::uint64_t seed, DType type);

/// Data of a case as a tensor of the type, which has these numbers.
Tensor upload(Batch& batch, Span<const float> data, const Shape& shape, DType type);

/// Zero, infinities, NaN, denormals, and numbers at which activations overflow or cancel.
const std::vector<float>& special_values();

/// The same for i32 and masks, as far as floats can have them: the limits of the range among them.
const std::vector<float>& special_values(DType type);

using reference::close;

/// close() to the reference of the case, where the device may also have flushed denormal operands.
bool close(const ElementwiseCase& c, double got, float x, float y, float z = 0);

/// Empty when got is what the case gives for x (and y and z) element by element; else where it first is not.
std::string mismatch(const ElementwiseCase& c, Span<const float> got, Span<const float> x, Span<const float> y,
                     Span<const float> z = {});
std::string mismatch(const ElementwiseCase& c, Span<const std::int32_t> got, Span<const float> x, Span<const float> y,
                     Span<const float> z = {});

/// The same against numbers already known.
std::string mismatch(Span<const float> got, Span<const float> want);

// Reductions. The tolerance of sum and dot of n elements is reduction_tolerance(n) times the sum of magnitudes,
// whatever the elements are: no element takes part in more additions than that has roundings.
using reference::reduction_tolerance;

double sum(Span<const float> x);
double sum_of_magnitudes(Span<const float> x);
double dot(Span<const float> x, Span<const float> y);
double dot_of_magnitudes(Span<const float> x, Span<const float> y);
double maximum(Span<const float> x);  // NaN if any element is
double minimum(Span<const float> x);

// Matmul. The tolerance of one element is that of its kernel times the same product of magnitudes, whatever the
// elements are. `shared` for kernels whose lanes, four or more, share k: gemv and subgroup with W[n,k].
using reference::matmul_bound;
// What random elements of both signs keep within, for k up to some thousands.
inline constexpr double matmul_tolerance = 0x1p-20;

struct MatmulReference {
  std::vector<double> product;
  std::vector<double> magnitude;  // the product of |a| and |b|
};
MatmulReference matmul(Span<const float> a, Span<const float> b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                       Layout layout, float alpha = 1);

/// The same for operands of two dims or more, whose leading dims broadcast as in numpy.
MatmulReference batched_matmul(Span<const float> a, const Shape& a_shape, Span<const float> b, const Shape& b_shape,
                               Layout layout, float alpha = 1);

/// Empty when every element is within tolerance times magnitude of the product.
std::string mismatch(Span<const float> got, const MatmulReference& want, double tolerance);

}  // namespace brontes::cases
