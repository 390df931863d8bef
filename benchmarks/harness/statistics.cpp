#include "statistics.hpp"

#include <algorithm>

namespace brontes::bench {
namespace {

double smallest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

// Whether `slow` took longer than `fast`, beyond doubt.
bool differs(const Times& fast, const Times& slow, double ratio, double median_ratio, double floor, double threshold) {
  if (smallest(slow.minima) <= largest(fast.minima) || ratio <= 1 + floor) return false;
  const double doubt = std::max(spread_of(fast.medians), spread_of(slow.medians));
  return median_ratio * (1 + doubt) > 1 + threshold;
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double spread_of(const std::vector<double>& values) {
  const double middle = median_of(values);
  return middle > 0 ? (largest(values) - smallest(values)) / middle : 0;
}

bool can_be_judged(const Times& times) noexcept {
  return times.minima.size() >= least_runs && times.epochs >= least_epochs;
}

double noise_of(const Times& old, const Times& now) { return std::max(spread_of(old.minima), spread_of(now.minima)); }

Verdict judge(const Times& old, const Times& now, double threshold, double usual_noise) {
  Verdict verdict;
  verdict.by_median = median_of(now.medians) / median_of(old.medians);
  verdict.by_minimum = median_of(now.minima) / median_of(old.minima);
  if (!can_be_judged(old) || !can_be_judged(now)) return verdict;
  verdict.floor = std::max({threshold, 2 * noise_of(old, now), 2 * usual_noise});
  verdict.change = Change::none;
  if (differs(old, now, verdict.by_minimum, verdict.by_median, verdict.floor, threshold)) {
    verdict.change = Change::slower;
  } else if (differs(now, old, 1 / verdict.by_minimum, 1 / verdict.by_median, verdict.floor, threshold)) {
    verdict.change = Change::faster;
  }
  return verdict;
}

}  // namespace brontes::bench
