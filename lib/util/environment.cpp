// SPDX-License-Identifier: MIT
#include "util/environment.hpp"

#include <cstdlib>

#if !defined(_WIN32)
#  include <unistd.h>
#endif
#if defined(__linux__)
#  include <sys/auxv.h>
#endif

namespace brontes::util {

bool secure_execution() noexcept {
#if defined(_WIN32)
  return false;
#else
#  if defined(__linux__)
  if (::getauxval(AT_SECURE) != 0) return true;
#  elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__)
  if (::issetugid() != 0) return true;
#  endif
  // A process started by root may also have become two users at once.
  return ::geteuid() != ::getuid() || ::getegid() != ::getgid();
#endif
}

const char* environment(const char* name) noexcept { return secure_execution() ? nullptr : std::getenv(name); }

}  // namespace brontes::util
