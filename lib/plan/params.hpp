// What elementwise programs are made of, and what all kernels have in common. Push-constant blocks are in kernels.hpp,
// which kernelgen writes; what else is known of a kernel lies beside the op that uses it (lib/ops).
//
// Two rules hold for every kernel:
// - Workgroups are numbered linearly, x fastest, over all three axes of the grid; `groups` is how many
//   the work needs. A grid may be rounded up when it is folded over axes: the surplus does nothing.
// - Element counts are below 2^31, so that index arithmetic stays inside 32 bits.
//
// Iteration bounds are for lavapipe from Mesa 22, which silently ends an invocation's loops once it has
// counted 65535 iterations. They assume that nothing is unrolled, add up nested and sequential loops,
// and count one more for each time a loop is entered, for the test that ends it.
#pragma once

#include <cstdint>

namespace brontes::plan {

constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) noexcept { return a / b + (a % b != 0); }

// Steps of a tree over `width` lanes: ceil(log2(width)).
constexpr std::uint32_t tree_steps(std::uint32_t width) noexcept {
  std::uint32_t steps = 0;
  while ((1u << steps) < width) ++steps;
  return steps;
}

// elementwise: a program of up to 8 steps over up to 4 inputs, of which up to 3 results are written.

inline constexpr std::uint32_t elementwise_max_inputs = 4;
inline constexpr std::uint32_t elementwise_max_steps = 8;
inline constexpr std::uint32_t elementwise_max_outputs = 3;
inline constexpr std::uint32_t elementwise_max_vectors = 8;

// How output element j finds its element of an input, the value of the constants mode0..mode3. In every
// mode but `unused` it is element (j / div) % mod; the modes say how much of that is known beforehand.
enum class ElementwiseMode : std::uint32_t {
  unused = 0,
  full = 1,         // element j; the input holds at least n elements
  scalar = 2,       // element 0
  row_vec4 = 3,     // div == 1 and mod % 4 == 0
  column_vec4 = 4,  // div % 4 == 0
  general = 5,      // any div >= 1 and mod >= 1
};

// elementwise_strided: the same over inputs of which some are views or repeat in any way (record::Access).

inline constexpr std::uint32_t strided_max_steps = 4;

// The lowest bits of the constants access0..access3.
enum class StridedMode : std::uint32_t {
  unused = 0,
  full = 1,    // element j
  scalar = 2,  // element 0
  vec4 = 3,    // rows and whatever they begin at are whole vec4s
  same = 4,    // the last dim repeats, and is a whole number of vec4s
  row = 5,     // the last dim has any stride, and is a whole number of vec4s
  any = 6,
};

// The word of one step: its op code (elementwise.def) and its operands, where 0..3 are the external
// inputs and 4 + s is the result of step s.
constexpr std::uint32_t elementwise_step(std::uint32_t op, std::uint32_t a = 0, std::uint32_t b = 0,
                                         std::uint32_t c = 0) noexcept {
  return op | a << 8 | b << 16 | c << 24;
}

constexpr std::uint32_t elementwise_groups(std::uint32_t n, std::uint32_t group_size, std::uint32_t vectors) noexcept {
  return ceil_div(ceil_div(n, 4), group_size * vectors);
}

constexpr std::uint32_t elementwise_iterations(std::uint32_t vectors) noexcept { return vectors + 1; }

// The program that a matmul or a reduction runs on its results: register 0 is the result, registers 1 and
// 2 are two more inputs.

inline constexpr std::uint32_t epilogue_max_inputs = 2;
inline constexpr std::uint32_t epilogue_max_steps = 4;

// The program that a reduction or a row op runs on its operand as it loads it: registers 0 and 1 are its inputs, of
// which the first has an element for each of the operand's.

inline constexpr std::uint32_t prologue_max_inputs = 2;
inline constexpr std::uint32_t prologue_max_steps = 4;

}  // namespace brontes::plan
