#include "statistics.hpp"

#include <algorithm>
#include <cstddef>

namespace brontes::bench {
namespace {

double smallest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

// Whether `slow` took longer: certainly, perhaps, or not.
enum class Answer : std::uint8_t { no, perhaps, yes };

Answer took_longer(const Times& fast, const Times& slow, double ratio, double median_ratio, double floor,
                   double threshold) {
  if (ratio <= 1 + threshold) return Answer::no;
  const double doubt = std::max(spread_of(fast.medians), spread_of(slow.medians));
  if (median_ratio * (1 + doubt) <= 1 + threshold) return Answer::no;
  if (smallest(slow.minima) > largest(fast.minima) && ratio > 1 + floor) return Answer::yes;
  return chance_of_ranks(fast.minima, slow.minima) < least_chance ? Answer::yes : Answer::perhaps;
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

double chance_of_ranks(const std::vector<double>& smaller, const std::vector<double>& larger) {
  const std::size_t m = smaller.size(), n = larger.size();
  // In how many pairs the order is the wrong way round, or not known.
  std::size_t wrong = 0;
  for (const double s : smaller) {
    for (const double l : larger) wrong += s >= l ? 1 : 0;
  }
  // ways[i][u]: arrangements of i of the first and, as j goes from 0 to n, j of the second with u wrong pairs. The
  // largest of them all is one of the first, and above j of the second, or one of the second.
  std::vector<std::vector<double>> ways(m + 1, std::vector<double>(wrong + 1, 0));
  for (std::size_t i = 0; i <= m; ++i) ways[i][0] = 1;
  for (std::size_t j = 1; j <= n; ++j) {
    for (std::size_t i = 1; i <= m; ++i) {
      for (std::size_t u = wrong + 1; u-- > 0;) {
        ways[i][u] += u >= j ? ways[i - 1][u - j] : 0;
      }
    }
  }
  double as_extreme = 0, all = 1;
  for (const double count : ways[m]) as_extreme += count;
  for (std::size_t i = 1; i <= m; ++i) all *= static_cast<double>(n + i) / static_cast<double>(i);
  return as_extreme / all;
}

Verdict judge(const Times& old, const Times& now, double threshold, double usual_noise) {
  Verdict verdict;
  verdict.by_median = median_of(now.medians) / median_of(old.medians);
  verdict.by_minimum = median_of(now.minima) / median_of(old.minima);
  if (!can_be_judged(old) || !can_be_judged(now)) return verdict;
  verdict.floor = std::max({threshold, 2 * noise_of(old, now), 2 * usual_noise});
  const Answer slower = took_longer(old, now, verdict.by_minimum, verdict.by_median, verdict.floor, threshold);
  const Answer faster = took_longer(now, old, 1 / verdict.by_minimum, 1 / verdict.by_median, verdict.floor, threshold);
  verdict.change = slower == Answer::yes                                    ? Change::slower
                   : faster == Answer::yes                                  ? Change::faster
                   : slower == Answer::perhaps || faster == Answer::perhaps ? Change::unclear
                                                                            : Change::none;
  return verdict;
}

}  // namespace brontes::bench
