// What the machine can do at best: the roofs that figures are compared with, measured in the same run.
#pragma once

#include "report.hpp"

#include <brontes/device.hpp>

namespace brontes::bench {

/// Multiply-adds in registers on all CPUs, with the widest vectors of this CPU: FLOP per second, where a multiply-add
/// counts as two. The best of several short turns.
double measure_multiply_adds();

/// a = b + s * c on all CPUs, with arrays that fit in no cache: bytes per second, each array counted once as STREAM
/// does.
double measure_triad();

/// The limits of the CPUs, and, for a device that is not one, of the device by brontes::measure_limits(). Takes about
/// half a second, and a second more for a GPU.
Limits measure_machine(const Device& device);

}  // namespace brontes::bench
