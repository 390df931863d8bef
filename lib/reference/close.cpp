#include "reference/reference.hpp"

#include <cmath>
#include <limits>

namespace brontes::reference {

bool close(float got, double want, Tolerance tolerance) {
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  constexpr auto smallest = static_cast<double>(std::numeric_limits<float>::min());
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want)) return std::isinf(got) && std::signbit(got) == std::signbit(want);
  const double magnitude = std::fabs(want);
  const double allowed = tolerance.absolute + tolerance.relative * magnitude;
  // Past the largest finite number the answer is infinite; within the tolerance of it, either will do.
  if (std::isinf(got)) return std::signbit(got) == std::signbit(want) && magnitude + allowed > largest;
  const double difference = std::fabs(static_cast<double>(got) - want);
  return difference <= allowed || (magnitude < smallest && std::fabs(static_cast<double>(got)) <= smallest);
}

}  // namespace brontes::reference
