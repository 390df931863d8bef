// Ops that choose or move elements.
#include "reference/reference.hpp"

#include <cmath>
#include <limits>

namespace brontes::reference {
namespace {

std::uint64_t row_width(const Shape& shape) {
  std::uint64_t width = 1;
  for (std::size_t i = 1; i < shape.rank(); ++i) width *= shape[i];
  return width;
}

// Of an index that may count from the end; -1 for one that is not there.
std::int64_t row_of(double index, const Shape& shape) {
  const auto rows = static_cast<std::int64_t>(shape[0]);
  auto row = static_cast<std::int64_t>(index);
  if (row < 0) row += rows;
  return row >= 0 && row < rows ? row : -1;
}

Expected exactly(Values values) {
  Values allowed(values.size());
  return {std::move(values), std::move(allowed)};
}

}  // namespace

Expected extreme(const Values& x, const Shape& shape, std::size_t axis, bool smallest) {
  Values places;
  for_lines(shape, axis, [&](std::uint64_t first, std::uint64_t stride, std::uint64_t n) {
    std::uint64_t best = 0;
    for (std::uint64_t i = 1; i < n; ++i) {
      const double here = x[first + i * stride];
      const double most = x[first + best * stride];
      const bool better = smallest ? here < most : here > most;
      if (!std::isnan(most) && (std::isnan(here) || better)) best = i;
    }
    places.push_back(static_cast<double>(best));
  });
  return exactly(std::move(places));
}

Expected gather(const Values& table, const Shape& shape, DType type, const Values& index) {
  const std::uint64_t width = row_width(shape);
  const double nothing = type == DType::i32    ? static_cast<double>(std::numeric_limits<std::int32_t>::min())
                         : type == DType::mask ? 0
                                               : std::numeric_limits<double>::quiet_NaN();
  Values values;
  for (double i : index) {
    const std::int64_t row = row_of(i, shape);
    for (std::uint64_t j = 0; j < width; ++j) {
      values.push_back(row < 0 ? nothing : table[static_cast<std::uint64_t>(row) * width + j]);
    }
  }
  return exactly(std::move(values));
}

Expected update_rows(const Values& x, const Shape& shape, const Values& index, const Values& rows) {
  const std::uint64_t width = row_width(shape);
  Values values = x;
  for (std::size_t k = 0; k < index.size(); ++k) {
    const std::int64_t row = row_of(index[k], shape);
    for (std::uint64_t j = 0; row >= 0 && j < width; ++j) {
      values[static_cast<std::uint64_t>(row) * width + j] = rows[k * width + j];
    }
  }
  return exactly(std::move(values));
}

Expected concat(Span<const Values> parts, std::uint64_t outer) {
  Values values;
  for (std::uint64_t o = 0; o < outer; ++o) {
    for (const Values& part : parts) {
      const std::uint64_t length = part.size() / outer;
      for (std::uint64_t i = 0; i < length; ++i) values.push_back(part[o * length + i]);
    }
  }
  return exactly(std::move(values));
}

}  // namespace brontes::reference
