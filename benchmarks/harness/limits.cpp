#include "limits.hpp"

#include "machine.hpp"

#include <brontes/profile.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#ifdef __linux__
#  include <sched.h>
#endif

#if defined(__x86_64__) || defined(__i386__)
#  define BRONTES_BENCH_X86 1
#  include <immintrin.h>
#endif

namespace brontes::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A loop of known length stays in registers only if it is unrolled, whatever the build type.
#ifdef __clang__
#  define BRONTES_BENCH_UNROLL _Pragma("clang loop unroll(full)")
#else
#  define BRONTES_BENCH_UNROLL _Pragma("GCC unroll 12")
#endif

// More accumulators than a multiply-add has cycles of latency, times the units that can start one each cycle.
constexpr std::size_t accumulators = 12;

// Short turns, and many: some of them meet nobody else on any CPU.
constexpr std::size_t arithmetic_turns = 200, memory_turns = 256;

// Multiply-adds in registers, and how many floats each of them works on. Sums stay finite: x = x / 2 + 1.
struct MultiplyAdds {
  float (*run)(std::size_t steps);
  std::size_t lanes;
};

#ifdef BRONTES_BENCH_X86

__attribute__((target("avx512f"))) float multiply_adds_512(std::size_t steps) {
  const __m512 half = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1.0f);
  __m512 sums[accumulators];
  for (__m512& sum : sums) sum = one;
  for (std::size_t i = 0; i < steps; ++i) {
    BRONTES_BENCH_UNROLL
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, half, one);
  }
  __m512 total = sums[0];
  for (std::size_t i = 1; i < accumulators; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}

__attribute__((target("avx2,fma"))) float multiply_adds_256(std::size_t steps) {
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1.0f);
  __m256 sums[accumulators];
  for (__m256& sum : sums) sum = one;
  for (std::size_t i = 0; i < steps; ++i) {
    BRONTES_BENCH_UNROLL
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, half, one);
  }
  __m256 total = sums[0];
  for (std::size_t i = 1; i < accumulators; ++i) total = _mm256_add_ps(total, sums[i]);
  return _mm256_cvtss_f32(total);
}

#endif

using Four = float __attribute__((vector_size(16)));
using LooseFour = float __attribute__((vector_size(16), aligned(4), may_alias));

// With what every CPU of the architecture has: a fused operation on ARM, two on the oldest x86.
float multiply_adds_128(std::size_t steps) {
  const Four half{0.5f, 0.5f, 0.5f, 0.5f}, one{1.0f, 1.0f, 1.0f, 1.0f};
  Four sums[accumulators];
  for (Four& sum : sums) sum = one;
  for (std::size_t i = 0; i < steps; ++i) {
    BRONTES_BENCH_UNROLL
    for (Four& sum : sums) sum = sum * half + one;
  }
  Four total = sums[0];
  for (std::size_t i = 1; i < accumulators; ++i) total += sums[i];
  return total[0];
}

MultiplyAdds multiply_adds() {
#ifdef BRONTES_BENCH_X86
  switch (simd()) {
    case Simd::avx512: return {multiply_adds_512, 16};
    case Simd::avx2: return {multiply_adds_256, 8};
    case Simd::other: break;
  }
#endif
  return {multiply_adds_128, 4};
}

// Threads that wait for each other are left on one CPU by schedulers, one after the other. This one stays on the CPU of
// its number, of those that the process may use.
void stay_on_cpu(std::size_t number) {
#ifdef __linux__
  cpu_set_t allowed, own;
  CPU_ZERO(&allowed);
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (std::size_t cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) == 0 || seen++ != number) continue;
    CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
#else
  (void)number;
#endif
}

// How long `work` takes on all CPUs at once, given the numbers of the thread and of the turn: the shortest of several
// turns that all begin together. A turn ends when the last thread does.
double seconds_on_all(std::size_t turns, const std::function<void(std::size_t, std::size_t)>& work) {
  const std::size_t threads = cpu_count();
  std::atomic<std::size_t> arrived{0};
  std::vector<Clock::time_point> begins(threads * turns), ends(threads * turns);
  auto each = [&](std::size_t thread) {
    for (std::size_t turn = 0; turn < turns; ++turn) {
      ++arrived;
      while (arrived.load() < threads * (turn + 1)) std::this_thread::yield();
      begins[turn * threads + thread] = Clock::now();
      work(thread, turn);
      ends[turn * threads + thread] = Clock::now();
    }
  };
  // None on the calling thread, which keeps all its CPUs.
  std::vector<std::thread> workers;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      stay_on_cpu(thread);
      each(thread);
    });
  }
  for (std::thread& worker : workers) worker.join();

  double best = 0;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const auto at = static_cast<std::ptrdiff_t>(turn * threads), count = static_cast<std::ptrdiff_t>(threads);
    const auto begin = *std::min_element(begins.begin() + at, begins.begin() + at + count);
    const auto end = *std::max_element(ends.begin() + at, ends.begin() + at + count);
    const double seconds = std::chrono::duration<double>(end - begin).count();
    if (turn == 0 || seconds < best) best = seconds;
  }
  return best;
}

}  // namespace

double measure_multiply_adds() {
  const MultiplyAdds kind = multiply_adds();
  constexpr std::size_t steps = 100'000;
  std::vector<float> kept(cpu_count());
  const double seconds =
      seconds_on_all(arithmetic_turns, [&](std::size_t thread, std::size_t) { kept[thread] = kind.run(steps); });
  const double flops = 2.0 * static_cast<double>(kind.lanes * accumulators) * static_cast<double>(steps) *
                       static_cast<double>(cpu_count());
  // The sums are used, so that none of it can be left out.
  return kept[0] > 0 && seconds > 0 ? flops / seconds : 0;
}

double measure_triad() {
  // 64 MiB each: more than the caches of one socket hold. A turn works on a piece of them, and comes back to it when
  // all others had theirs.
  constexpr std::size_t count = std::size_t{1} << 24, pieces = 64;
  std::vector<float> a(count), b(count, 1.0f), c(count, 2.0f);
  const std::size_t share = count / cpu_count() / pieces / 4 * 4;
  const double seconds = seconds_on_all(memory_turns, [&](std::size_t thread, std::size_t turn) {
    const std::size_t first = (turn % pieces * cpu_count() + thread) * share;
    auto* const to = reinterpret_cast<LooseFour*>(a.data() + first);
    const auto* const x = reinterpret_cast<const LooseFour*>(b.data() + first);
    const auto* const y = reinterpret_cast<const LooseFour*>(c.data() + first);
    for (std::size_t i = 0; i < share / 4; ++i) to[i] = x[i] + 0.5f * y[i];
  });
  const double bytes = 3.0 * sizeof(float) * static_cast<double>(share * cpu_count());
  return a[0] > 0 && seconds > 0 ? bytes / seconds : 0;
}

Limits measure_machine(const Device& device) {
  Limits limits;
  limits.threads = cpu_count();
  limits.host_flops = measure_multiply_adds();
  limits.host_bytes = measure_triad();
  if (device.info().type == DeviceType::cpu) {
    limits.flops = limits.host_flops;
    limits.bytes = limits.host_bytes;
    limits.source = "host";
  } else if (const auto measured = measure_limits(device)) {
    limits.flops = measured->flops_per_second;
    limits.bytes = measured->bytes_per_second;
    limits.source = "kernels";
  }
  return limits;
}

}  // namespace brontes::bench
