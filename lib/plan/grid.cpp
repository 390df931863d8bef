#include "plan/plan.hpp"

namespace brontes::plan {

Result<std::array<std::uint32_t, 3>> fold(std::uint64_t groups, const Traits& traits) {
  const auto& most = traits.max_group_count;
  auto ceil_div64 = [](std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); };
  if (groups <= most[0]) return std::array<std::uint32_t, 3>{static_cast<std::uint32_t>(groups), 1, 1};

  // As square as the limits allow wastes the fewest groups: rows of equal length, rounded up once.
  const std::uint64_t rows = ceil_div64(groups, most[0]);
  if (rows <= most[1]) {
    const std::uint64_t x = ceil_div64(groups, rows);
    return std::array<std::uint32_t, 3>{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(rows), 1};
  }
  const std::uint64_t planes = ceil_div64(rows, most[1]);
  if (planes <= most[2]) {
    const std::uint64_t y = ceil_div64(rows, planes);
    const std::uint64_t x = ceil_div64(groups, y * planes);
    return std::array<std::uint32_t, 3>{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                                        static_cast<std::uint32_t>(planes)};
  }
  return Error(Errc::limit_exceeded,
               std::to_string(groups) + " workgroups are more than this device takes in one dispatch: " +
                   std::to_string(most[0]) + " x " + std::to_string(most[1]) + " x " + std::to_string(most[2]));
}

Region Arena::reserve(std::uint64_t bytes, bool half) {
  Region region{arena, end_, bytes, half};
  const std::uint64_t rounded = (bytes + alignment_ - 1) / alignment_ * alignment_;
  end_ += rounded;
  reservations_.push_back(region);
  return region;
}

}  // namespace brontes::plan
