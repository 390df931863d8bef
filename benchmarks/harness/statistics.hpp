// Whether times differ, given how much they differ by themselves. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::bench {

/// Of values that are not empty.
double median_of(std::vector<double> values);

/// How far apart values are: the largest less the smallest, as a fraction of the median. 0 for a single one.
double spread_of(const std::vector<double>& values);

/// What each run of a case took: one number per run, and as many medians as minima.
struct Times {
  std::vector<double> medians, minima;
  std::size_t epochs = 15;  ///< samples of the run that has the fewest
};

enum class Change : std::uint8_t {
  unknown,  ///< too few runs to know the noise
  none,     ///< within the noise
  slower,
  faster,
  unclear,  ///< it looks slower or faster, and more runs would tell
};

struct Verdict {
  Change change = Change::unknown;
  double by_median = 1;   ///< new over old: above 1 is slower
  double by_minimum = 1;  ///< by the medians of the runs' minima
  double floor = 0;       ///< the fraction by which times must differ to mean anything
};

/// With fewer runs, or fewer epochs in one of them, nobody can tell noise from change.
inline constexpr std::size_t least_runs = 3;
inline constexpr std::size_t least_epochs = 3;

bool can_be_judged(const Times& times) noexcept;

/// How much minima of a case differ between runs of one build: the larger spread of the two.
double noise_of(const Times& old, const Times& now);

/// How likely it is that values as different as these come from one distribution: the chance that ranks put `larger`
/// this far above `smaller`, by the exact distribution of Mann and Whitney. Ties count for neither.
double chance_of_ranks(const std::vector<double>& smaller, const std::vector<double>& larger);

/// Ranks decide where that chance is below this. Ten runs of each build that do not overlap are enough for it, and more
/// that do.
inline constexpr double least_chance = 1e-5;

/// Compares two builds by the fastest epoch of each run, as minima come closest to what the machine can do and are
/// hardly moved by what else it does. Times differ in either of two ways; both ask that the medians of the minima
/// differ by more than `threshold`, and that the medians of the runs do not contradict.
///
/// - A few quiet runs: every run of one build has a larger minimum than any of the other, and they differ by more than
///   the noise floor: the largest of `threshold`, twice the noise of this case, and twice `usual_noise`, which is that
///   of all cases and catches the one whose few runs agree by accident.
/// - Many runs, quiet or not: by ranks.
///
/// What differs by more than `threshold` and is settled by neither is unclear.
Verdict judge(const Times& old, const Times& now, double threshold, double usual_noise = 0);

}  // namespace brontes::bench
