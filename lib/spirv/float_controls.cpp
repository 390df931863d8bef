#include "spirv/float_controls.hpp"

#include <cstddef>
#include <cstring>

#include "spirv/specialize_ops.hpp"

namespace brontes::spirv {
namespace {

constexpr std::uint32_t mode_signed_zero_inf_nan_preserve = 4461;
constexpr std::uint32_t capability_signed_zero_inf_nan_preserve = 4466;
// From which on it takes no extension.
constexpr std::uint32_t version_1_4 = 0x00010400;

std::vector<std::uint32_t> extension() {
  constexpr char name[] = "SPV_KHR_float_controls";
  constexpr std::size_t words = 1 + (sizeof name + 3) / 4;
  std::vector<std::uint32_t> instruction(words);
  instruction[0] = static_cast<std::uint32_t>(words << 16) | op_extension;
  std::memcpy(instruction.data() + 1, name, sizeof name);
  return instruction;
}

}  // namespace

void preserve_special_values(std::vector<std::uint32_t>& module) {
  // Capabilities come first, then extensions; execution modes follow the last entry point.
  std::size_t capabilities_end = header_words, extensions_end = header_words, entry_points_end = 0;
  std::vector<std::uint32_t> modes;
  for (std::size_t at = header_words; at < module.size();) {
    const std::uint32_t* word = module.data() + at;
    const std::size_t next = at + length(word);
    if (next == at || next > module.size()) return;
    const std::uint32_t op = opcode(word);
    if (op == op_capability) capabilities_end = extensions_end = next;
    if (op == op_extension) extensions_end = next;
    if (op == op_entry_point) {
      if (length(word) < 3) return;
      modes.insert(modes.end(), {4u << 16 | op_execution_mode, word[2], mode_signed_zero_inf_nan_preserve, 32u});
      entry_points_end = next;
    }
    if (op == op_function) break;
    at = next;
  }
  if (modes.empty()) return;
  auto insert = [&](std::size_t at, const std::vector<std::uint32_t>& words) {
    module.insert(module.begin() + static_cast<std::ptrdiff_t>(at), words.begin(), words.end());
  };
  // From behind, so that places stay what they are.
  insert(entry_points_end, modes);
  if (module[1] < version_1_4) insert(extensions_end, extension());
  insert(capabilities_end, {2u << 16 | op_capability, capability_signed_zero_inf_nan_preserve});
}

}  // namespace brontes::spirv
