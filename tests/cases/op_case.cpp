#include "op_case.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace brontes::cases {

std::vector<NamedCaseRoom> op_cases() {
  return {
#define BRONTES_ROOM(name, ...) {#name, name##_cases},
#include "ops/ops.def"
#undef BRONTES_ROOM
  };
}

Data random_data(const OpCase& c, std::uint64_t seed) {
  Data data;
  for (const Operand& o : c.operands) data.push_back(random_values(o.shape.count(), o.low, o.high, ++seed, o.type));
  return data;
}

Data special_data(const OpCase& c, std::uint64_t seed) {
  Data data = random_data(c, seed);
  const std::vector<float>& special = special_values();
  for (std::size_t o = 0; o < data.size(); ++o) {
    const DType type = c.operands[o].type;
    if (type != DType::f32 && type != DType::f16) continue;
    auto& values = data[o];
    for (std::size_t i = seed % 7; i < values.size(); i += 11) values[i] = special[(i + seed) % special.size()];
    values = as_type(std::move(values), type);
  }
  return data;
}

OpCase with_halves(OpCase c) {
  c.name += "/f16";
  for (Operand& o : c.operands) {
    if (o.type == DType::f32) o.type = DType::f16;
  }
  return c;
}

OpCase with_half_result(OpCase c) {
  c.name += "/to_f16";
  c.record = [record = std::move(c.record)](Batch& batch, const std::vector<Tensor>& operands) {
    return batch.cast(record(batch, operands), DType::f16);
  };
  c.reference = [reference = std::move(c.reference)](const Data& data) {
    Expected want = reference(data);
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      // Two numbers that are so close may be rounded to neighbours.
      double& allowed = want.allowed[i];
      const double before = want.values[i];
      want.values[i] = nearest_half(before);
      if (allowed == 0) continue;
      const bool edge = std::isinf(want.values[i]) != std::isinf(nearest_half(before - std::copysign(allowed, before)));
      if (edge) want.values[i] = std::copysign(65504.0, before);
      allowed =
          edge ? std::numeric_limits<double>::infinity() : allowed + std::max(std::fabs(before) * 0x1p-10, 0x1p-24);
    }
    return want;
  };
  return c;
}

namespace {

bool is_close(float got, double want, double allowed) { return close(got, want, {0, allowed}); }
bool is_close(std::int32_t got, double want, double allowed) {
  return std::fabs(static_cast<double>(got) - want) <= allowed;
}

template <class T>
std::string find_mismatch(Span<const T> got, const Expected& want) {
  if (got.size() != want.values.size()) {
    return std::to_string(got.size()) + " elements instead of " + std::to_string(want.values.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (is_close(got[i], want.values[i], want.allowed[i])) continue;
    std::ostringstream text;
    text.precision(9);
    text << "element " << i << " of " << got.size() << " is " << got[i] << " instead of " << want.values[i]
         << " within " << want.allowed[i];
    return text.str();
  }
  return {};
}

}  // namespace

std::string mismatch(Span<const float> got, const Expected& want) { return find_mismatch(got, want); }
std::string mismatch(Span<const std::int32_t> got, const Expected& want) { return find_mismatch(got, want); }

std::string mismatch(const Batch& batch, Tensor result, const Expected& want) {
  if (result.dtype() == DType::f32 || result.dtype() == DType::f16) {
    const auto got = batch.read(result);
    return got ? mismatch(Span<const float>(*got), want) : got.error().message;
  }
  const auto got = batch.read_i32(result);
  return got ? mismatch(Span<const std::int32_t>(*got), want) : got.error().message;
}

std::string dims(const Shape& shape) {
  std::string text;
  for (std::size_t i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : "x") + std::to_string(shape[i]);
  return text;
}

}  // namespace brontes::cases
