// Hexadecimal digits, in lower case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace brontes::util {

/// At least `digits` of them, with leading zeros.
inline std::string hex(std::uint64_t value, std::size_t digits = 1) {
  std::string text;
  for (; value != 0 || text.size() < digits; value >>= 4) text.insert(text.begin(), "0123456789abcdef"[value & 15]);
  return text;
}

/// Two digits a byte.
inline std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += hex(byte, 2);
  return text;
}

}  // namespace brontes::util
