#include "spirv/float_controls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "spirv/specialize_ops.hpp"

namespace brontes::spirv {
namespace {

struct Mode {
  std::uint32_t mode, capability, width;
};
constexpr Mode signed_zero_inf_nan_preserve{4461, 4466, 32};
constexpr Mode half_denorm_preserve{4459, 4464, 16};
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

void add(std::vector<std::uint32_t>& module, const Mode& mode) {
  const std::vector<std::uint32_t> wanted_extension = extension();
  bool has_extension = module.size() > 1 && module[1] >= version_1_4;
  // Capabilities come first, then extensions; execution modes follow the last entry point.
  std::size_t capabilities_end = header_words, extensions_end = header_words, entry_points_end = 0;
  std::vector<std::uint32_t> modes;
  for (std::size_t at = header_words; at < module.size();) {
    const std::uint32_t* word = module.data() + at;
    const std::size_t next = at + length(word);
    if (next == at || next > module.size()) return;
    const std::uint32_t op = opcode(word);
    if (op == op_capability) capabilities_end = extensions_end = next;
    if (op == op_extension) {
      extensions_end = next;
      has_extension |= std::equal(word, word + length(word), wanted_extension.begin(), wanted_extension.end());
    }
    if (op == op_entry_point) {
      if (length(word) < 3) return;
      modes.insert(modes.end(), {4u << 16 | op_execution_mode, word[2], mode.mode, mode.width});
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
  if (!has_extension) insert(extensions_end, wanted_extension);
  insert(capabilities_end, {2u << 16 | op_capability, mode.capability});
}

}  // namespace

void preserve_special_values(std::vector<std::uint32_t>& module) { add(module, signed_zero_inf_nan_preserve); }

void preserve_half_denormals(std::vector<std::uint32_t>& module) { add(module, half_denorm_preserve); }

}  // namespace brontes::spirv
