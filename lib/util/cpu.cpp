#include "util/cpu.hpp"

#include "util/hash.hpp"

#include <array>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#  include <cpuid.h>
#endif

namespace brontes::util {

std::uint64_t cpu_fingerprint() noexcept {
  Hash hash;
  hash.add(std::uint64_t{std::thread::hardware_concurrency()});
#if defined(__x86_64__) || defined(__i386__)
  std::array<unsigned, 4> r{};
  if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) != 0) {
    hash.add(std::uint64_t{r[0]});  // family, model and stepping
    hash.add(std::uint64_t{r[2]});  // SSE to AVX
  }
  if (__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) != 0) hash.add(std::uint64_t{r[1]});  // AVX2, AVX-512
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    if (__get_cpuid(leaf, &r[0], &r[1], &r[2], &r[3]) == 0) break;
    for (unsigned part : r) hash.add(std::uint64_t{part});  // the name
  }
#endif
  return finish(hash.value());
}

}  // namespace brontes::util
