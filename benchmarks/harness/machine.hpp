// The machine, and whether it is ours: times are worth what the quiet around them is worth.
#pragma once

#include <chrono>
#include <string>

namespace brontes::bench {

enum class Simd { other, avx2, avx512 };
Simd simd();
const char* to_string(Simd simd) noexcept;

/// The name of the CPU as the system has it; empty where it does not tell.
std::string cpu_name();

/// Logical CPUs, at least 1.
unsigned cpu_count();

/// The load average of the last minute, or a negative number where there is none.
double load_average();

/// Measures how busy everybody else keeps the machine between two calls.
class Bystander {
 public:
  Bystander();
  /// The share of all CPUs that other processes used since construction, 0 to 1, or negative where the
  /// system does not say. The kernel counts in hundredths of a second: useful from about 0.2 s on.
  double others() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  double busy_;
  double own_;
};

}  // namespace brontes::bench
