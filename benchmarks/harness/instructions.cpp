#include "instructions.hpp"

#ifdef __linux__
#  include <linux/perf_event.h>
#  include <sys/syscall.h>
#  include <unistd.h>
#endif

namespace brontes::bench {

#ifdef __linux__

Instructions::Instructions() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

Instructions::~Instructions() {
  if (file_ >= 0) close(file_);
}

std::uint64_t Instructions::count() const noexcept {
  std::uint64_t value = 0;
  return file_ >= 0 && read(file_, &value, sizeof value) == sizeof value ? value : 0;
}

#else

Instructions::Instructions() = default;
Instructions::~Instructions() = default;
std::uint64_t Instructions::count() const noexcept { return 0; }

#endif

}  // namespace brontes::bench
