// What ops must give, in double precision, and how closely. The tests hold the kernels to it (tests/cases), and so does
// Program::shadow_check(). Pure functions over plain numbers; i32 and masks are whole numbers.
#pragma once

#include <brontes/matmul.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace brontes::reference {

using Values = std::vector<double>;

/// Element i is to be within allowed[i] of values[i], as close() has it for NaN and infinities.
struct Expected {
  Values values;
  Values allowed;
};

/// A result may differ by absolute + relative * |reference|.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

/// NaN matches NaN, infinities match by sign, zeros match whatever their sign. Results below the
/// smallest normal number may have been flushed to zero.
bool close(float got, double want, Tolerance tolerance);

/// The nearest number that f16 has, ties to even; infinity from 65520 on.
double nearest_half(double x);

/// A row of kernels/elementwise.def. One of arity below 3 does not look at the operands that it has not.
struct Elementwise {
  const char* name;
  double (*formula)(double x, double y, double z, double p, double q);
  Tolerance tolerance;
};
/// Null when there is none of the name.
const Elementwise* elementwise(std::string_view name);

/// Roundings of a sum of n elements, times 2^-24: what reductions may be off by, relative to the sum of magnitudes.
double reduction_tolerance(std::uint64_t n);
/// Rounding errors that an element of a sum along a line of n takes part in, whatever the elements are.
double row_roundings(std::uint64_t n);

/// sum, dot, max and min of all elements; y is that of dot.
Expected reduce(std::string_view op, const Values& x, const Values& y);

/// sum, mean, prod, max, min, sum_of_squares, l1_norm, l2_norm and logsumexp, over the axes with a bit in `axes`.
Expected reduce_axes(std::string_view op, const Values& x, const Shape& shape, std::uint32_t axes);

/// Along one axis.
Expected softmax(const Values& x, const Shape& shape, std::size_t axis, bool logarithm);
Expected cumsum(const Values& x, const Shape& shape, std::size_t axis);
/// Over the last dim. Weight and bias may be empty.
Expected norm(const Values& x, const Shape& shape, const Values& weight, const Values& bias, double epsilon, bool rms);

/// The roundings of a product over k. `shared` for kernels whose lanes, four or more, share k.
double matmul_bound(std::uint64_t k, bool shared);
/// Operands of two dims or more, whose leading dims broadcast as in numpy. What is allowed is the product of |a| and
/// |b|, to be multiplied by a bound.
Expected matmul(const Values& a, const Shape& a_shape, const Values& b, const Shape& b_shape, Layout layout,
                double alpha);

/// The same where operands may be rounded to f16 (Precision::f16); what is allowed is complete.
Expected matmul_f16(const Values& a, const Shape& a_shape, const Values& b, const Shape& b_shape, Layout layout,
                    double alpha);

/// Where the largest or smallest element lies along an axis; the first NaN if there is one.
Expected extreme(const Values& x, const Shape& shape, std::size_t axis, bool smallest);

/// x with rows replaced, the last one where several have the same index.
Expected update_rows(const Values& x, const Shape& shape, const Values& index, const Values& rows);

/// Side by side along an axis with `outer` elements before it.
Expected concat(Span<const Values> parts, std::uint64_t outer);

/// Rows of a table by index; NaN, the least i32 or 0 for those that are not there.
Expected gather(const Values& table, const Shape& shape, DType type, const Values& index);

/// Calls line(first, stride, n) for every line along an axis.
template <class Line>
void for_lines(const Shape& shape, std::size_t axis, Line line) {
  std::uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::uint64_t n = shape[axis];
  for (std::uint64_t first = 0; n != 0 && first < shape.count(); first += n * inner) {
    for (std::uint64_t j = 0; j < inner; ++j) line(first + j, inner, n);
  }
}

}  // namespace brontes::reference
