// Cuts a run into submits, so that none takes longer than a driver's watchdog allows.
#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>

namespace brontes::plan {

Cost cost_of(const Dispatch& d) noexcept {
  Cost cost;
  cost.work = static_cast<double>(d.work);
  for (std::size_t b = 0; b < d.binding_count; ++b) {
    if ((d.used >> b & 1u) == 0) continue;
    // A few rows of a large table are not all of it.
    cost.bytes += std::min(static_cast<double>(d.bindings[b].bytes), 4 * cost.work);
  }
  return cost;
}

namespace {

std::uint64_t workgroups(const Dispatch& d) noexcept { return std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2]; }

// Folds the workgroups anew, into rows of at most so many.
void refold(Dispatch& d, std::uint64_t longest, const Traits& traits) {
  const std::uint64_t all = workgroups(d);
  const std::uint64_t least = (all + traits.max_group_count[1] - 1) / traits.max_group_count[1];
  const std::uint64_t row = std::clamp<std::uint64_t>(longest, least, traits.max_group_count[0]);
  d.groups = {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>((all + row - 1) / row), 1};
}

}  // namespace

double share_of_submit(const Dispatch& d, const Speed& speed, const PlanOptions& options) noexcept {
  const Cost cost = cost_of(d);
  double share = 0;
  if (options.work_per_submit != 0) share = cost.work / static_cast<double>(options.work_per_submit);
  if (options.seconds_per_submit > 0) share = std::max(share, estimate(cost, speed) / options.seconds_per_submit);
  return share;
}

std::vector<DispatchRange> split(std::vector<Dispatch>& dispatches, const Traits& traits, const PlanOptions& options) {
  std::vector<DispatchRange> ranges{{0, 0}};
  double used = 0;  // of the last submit
  auto next = [&](std::uint32_t dispatch, std::uint32_t row) {
    ranges.push_back({dispatch, dispatch, row, 0});
    used = 0;
  };
  for (std::uint32_t i = 0; i < dispatches.size(); ++i) {
    Dispatch& d = dispatches[i];
    const double share = share_of_submit(d, traits.speed, options);
    // A grid that needs its third axis stays as it is, and so does that of a kernel that may know its size.
    const bool cut = share > 1 && d.folded && d.groups[2] == 1 && workgroups(d) > 1;
    if (cut) refold(d, static_cast<std::uint64_t>(static_cast<double>(workgroups(d)) / share), traits);
    const std::uint32_t rows = cut ? d.groups[1] : 1;
    const double row_share = share / rows;
    if (used > 0 && used + row_share > 1) next(i, 0);
    ranges.back().end = i + 1;
    for (std::uint32_t row = 0; row < rows;) {
      // One at least; as many as there is room for.
      const double room = row_share > 0 ? std::floor((1 - used) / row_share) : rows;
      const auto now = static_cast<std::uint32_t>(std::clamp<double>(room, 1, rows - row));
      used += now * row_share;
      row += now;
      if (row == rows) break;
      d.in_parts = true;
      ranges.back().end_row = row;
      next(i, row);
      ranges.back().end = i + 1;
    }
  }
  return ranges;
}

}  // namespace brontes::plan
