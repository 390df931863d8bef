#include "machine.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace brontes::bench {
namespace {

// CPU seconds since boot, of everybody; negative where unknown.
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string label;
  // user nice system idle iowait irq softirq steal
  double ticks[8] = {};
  file >> label;
  for (double& t : ticks) file >> t;
  if (!file || label != "cpu") return -1;
  return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Simd simd() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return Simd::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Simd::avx2;
#endif
  return Simd::other;
}

const char* to_string(Simd simd) noexcept {
  switch (simd) {
    case Simd::avx512: return "AVX-512";
    case Simd::avx2: return "AVX2";
    case Simd::other: break;
  }
  return "other";
}

unsigned cpu_count() { return std::max(1u, std::thread::hardware_concurrency()); }

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? "" : line.substr(at);
  }
  return {};
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

Bystander::Bystander() : begin_(std::chrono::steady_clock::now()), busy_(busy_seconds()), own_(own_seconds()) {}

double Bystander::others() const {
  const double busy = busy_seconds();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (busy < 0 || busy_ < 0 || elapsed <= 0) return -1;
  const double share = (busy - busy_ - (own_seconds() - own_)) / (elapsed * cpu_count());
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace brontes::bench
