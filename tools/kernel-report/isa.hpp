// Reading AMD's assembly: what a kernel consists of, and where its hot loop is.
#pragma once

#include <cstdint>
#include <string>

namespace kernel_report {

struct Instructions {
  std::uint64_t total = 0;
  std::uint64_t fma = 0;     // multiply-adds: fma, fmac, mad, dot, packed and dual ones
  std::uint64_t vector = 0;  // all that the vector unit does, multiply-adds among it
  std::uint64_t memory = 0;  // loads and stores of buffers
  std::uint64_t lds = 0;     // loads and stores of shared memory
  std::uint64_t waits = 0;

  double fma_share() const { return total == 0 ? 0 : static_cast<double>(fma) / static_cast<double>(total); }
};

struct Isa {
  Instructions all;
  /// The innermost loop with the most multiply-adds, or else the longest; empty if there is no loop.
  Instructions hot_loop;
  /// The outermost loop around it without what is in it; empty if there is none.
  Instructions around_hot_loop;
};

/// Of the "Assembly" that RADV gives: labels at the start of a line, an instruction per line.
Isa read_isa(const std::string& assembly);

}  // namespace kernel_report
