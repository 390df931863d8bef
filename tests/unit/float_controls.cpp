#include "spirv/float_controls.hpp"

#include "spirv/words.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace brontes;

namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t capability = 17, extension = 10, entry_point = 15, execution_mode = 16, memory_model = 14;

// Modules have hundreds of thousands of instructions, and Catch2 takes its time: it is asked only where there is
// something to say.

// The opcodes of a module in order, each with the words behind it.
struct Instruction {
  std::uint32_t op;
  Words operands;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};
std::vector<Instruction> instructions(const Words& module) {
  std::vector<Instruction> all;
  for (std::size_t at = 5; at < module.size(); at += module[at] >> 16) {
    const std::size_t length = module[at] >> 16;
    if (length == 0 || length > module.size() - at) FAIL("word " << at << " begins no instruction");
    const auto begin = module.begin() + static_cast<std::ptrdiff_t>(at);
    all.push_back({module[at] & 0xffff, {begin + 1, begin + static_cast<std::ptrdiff_t>(length)}});
  }
  return all;
}

bool added(const Instruction& i) {
  if (i.op == capability) return i.operands == Words{4466};
  if (i.op == execution_mode) return i.operands.size() == 3 && i.operands[1] == 4461 && i.operands[2] == 32;
  if (i.op != extension) return false;
  return std::strcmp(reinterpret_cast<const char*>(i.operands.data()), "SPV_KHR_float_controls") == 0;
}

// Where in a module an instruction belongs, of those that come first.
int section(std::uint32_t op) {
  switch (op) {
    case capability: return 0;
    case extension: return 1;
    case 11: return 2;  // ExtInstImport
    case memory_model: return 3;
    case entry_point: return 4;
    case execution_mode:
    case 331: return 5;  // ExecutionModeId
    default: return 6;
  }
}

void check(const Words& before, std::uint32_t version) {
  Words module = before;
  module[1] = version;
  spirv::preserve_special_values(module);
  std::size_t capabilities = 0, extensions = 0, modes = 0, entry_points = 0;
  std::vector<Instruction> rest;
  int last = 0;
  for (const Instruction& i : instructions(module)) {
    if (section(i.op) < last) FAIL_CHECK("instruction " << i.op << " comes too late");
    last = section(i.op);
    if (i.op == entry_point) ++entry_points;
    if (!added(i)) {
      rest.push_back(i);
      continue;
    }
    capabilities += i.op == capability ? 1 : 0;
    extensions += i.op == extension ? 1 : 0;
    modes += i.op == execution_mode ? 1 : 0;
  }
  CHECK(rest == instructions(before));
  CHECK(capabilities == 1);
  CHECK(extensions == (version < 0x00010400 ? 1 : 0));
  CHECK(entry_points > 0);
  CHECK(modes == entry_points);
}

}  // namespace

TEST_CASE("every kernel can ask for special values to be kept, and nothing else about it changes", "[float_controls]") {
  for (std::size_t i = 0; i < kernels::count; ++i) {
    const kernels::Kernel& kernel = kernels::get(static_cast<kernels::Id>(i));
    for (std::size_t mode = 0; mode < kernels::access_modes; ++mode) {
      if (kernel.modules[mode].size == 0) continue;
      INFO(kernel.name);
      const Words module = spirv::words(kernel, static_cast<kernels::AccessMode>(mode));
      check(module, 0x00010300);
      check(module, 0x00010500);
    }
  }
}

TEST_CASE("words that are no module stay as they are when asked to keep special values", "[float_controls]") {
  const Words module = spirv::words(kernels::get(kernels::Id::reduce));
  for (const Words& words : {Words{}, Words{1, 2, 3}, Words{1, 2, 3, 4, 5, 0}, Words{1, 2, 3, 4, 5, 9u << 16 | 17},
                             Words(module.begin(), module.begin() + 7), Words{1, 2, 3, 4, 5, 2u << 16 | 15, 1}}) {
    Words same = words;
    spirv::preserve_special_values(same);
    CHECK(same == words);
  }
}

TEST_CASE("denormal halves can be asked for besides, and take no second extension", "[float_controls]") {
  Words module = spirv::words(kernels::get(kernels::Id::matmul_naive));
  module[1] = 0x00010300;
  const std::vector<Instruction> before = instructions(module);
  spirv::preserve_special_values(module);
  spirv::preserve_half_denormals(module);
  std::size_t special = 0, half = 0, extensions = 0;
  int last = 0;
  for (const Instruction& i : instructions(module)) {
    if (section(i.op) < last) FAIL_CHECK("instruction " << i.op << " comes too late");
    last = section(i.op);
    special += added(i) && i.op != extension ? 1 : 0;
    extensions += added(i) && i.op == extension ? 1 : 0;
    half += i.op == capability && i.operands == Words{4464} ? 1 : 0;
    half += i.op == execution_mode && i.operands.size() == 3 && i.operands[1] == 4459 && i.operands[2] == 16 ? 1 : 0;
  }
  CHECK(special == 2);
  CHECK(half == 2);
  CHECK(extensions == 1);
  CHECK(instructions(module).size() == before.size() + 5);
}
