// SPDX-License-Identifier: MIT
// Lets operator new of this program fail.
#pragma once

#include <cstddef>
#include <limits>

namespace brontes::test {

/// While it lives, the calling thread's allocations from number `first` on fail, `count` of them.
class FailingAllocations {
 public:
  explicit FailingAllocations(std::size_t first, std::size_t count = std::numeric_limits<std::size_t>::max()) noexcept;
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  ~FailingAllocations();

  /// How many have failed so far.
  std::size_t failed() const noexcept;
};

}  // namespace brontes::test
