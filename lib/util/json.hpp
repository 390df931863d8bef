// Text in JSON.
#pragma once

#include <string>

namespace brontes::util {

/// Quoted, with what JSON cannot have in a string escaped.
inline std::string json_string(const std::string& text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (code < 0x20) {
      quoted += "\\u00";
      quoted += digits[code >> 4];
      quoted += digits[code & 15u];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace brontes::util
