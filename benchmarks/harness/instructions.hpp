// Instructions that a thread has executed, where the system counts them.
#pragma once

#include <cstdint>

namespace brontes::bench {

/// A hardware counter of this thread, in user space.
///
/// Thread-safety: the thread that made it.
class Instructions {
 public:
  Instructions();
  ~Instructions();
  Instructions(const Instructions&) = delete;
  Instructions& operator=(const Instructions&) = delete;

  /// False in most virtual machines and containers.
  bool available() const noexcept { return file_ >= 0; }
  /// Since construction; 0 where they are not counted.
  std::uint64_t count() const noexcept;

 private:
  int file_ = -1;
};

}  // namespace brontes::bench
