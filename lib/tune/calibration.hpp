// Which way to reach memory is fastest on this machine for what is not a product. CPU drivers make gathers, loops or
// calls of the same load, and what these cost depends on the CPU below.
#pragma once

#include "tune/bench.hpp"

#include <optional>

namespace brontes::tune {

/// What a calibration that nobody asked for may take.
inline constexpr double calibration_seconds = 0.15;
/// It runs once elementwise ops have moved this much, as they were planned: then it takes a small part of the time.
inline constexpr std::uint64_t calibration_bytes = std::uint64_t{256} << 20;

/// The fastest mode for elementwise ops or reductions, of those that the device was opened with. Every mode is measured
/// on the same op, in a fixed order, the present one first. A mode is left out if building its kernel could take longer
/// than what is left of `seconds`. Another than the present one has to be faster by a tenth, by the fastest and by the
/// median run, and must have given the very same result. Nothing if there was nothing to compare.
Result<std::optional<kernels::AccessMode>> fastest_mode(const std::shared_ptr<engine::Engine>& engine,
                                                        plan::Family family, double seconds);

/// Counts what a plan that will run moves, and calibrates elementwise ops on a CPU driver when that is due. True if
/// something is known now that was not, so that the plan is better made again. A calibration that fails changes
/// nothing.
bool calibrate_for(const std::shared_ptr<engine::Engine>& engine, const plan::Plan& plan);

}  // namespace brontes::tune
