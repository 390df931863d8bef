#include "json.hpp"

#include <cmath>
#include <cstdio>

namespace tool {

void Json::begin(const char* key, char bracket) {
  member(key);
  out_ << bracket;
  ++depth_;
  first_ = true;
}

void Json::end(char bracket) {
  --depth_;
  if (!first_) line();
  out_ << bracket;
  first_ = false;
}

void Json::put(const char* key, const std::string& value) {
  member(key);
  quote(value);
}

void Json::put(const char* key, bool value) {
  member(key);
  out_ << (value ? "true" : "false");
}

void Json::put(const char* key, double value) {
  member(key);
  char text[32] = "null";
  if (std::isfinite(value)) std::snprintf(text, sizeof text, "%.9g", value);
  out_ << text;
}

void Json::put(const char* key, std::uint64_t value) {
  member(key);
  out_ << value;
}

void Json::line() { out_ << '\n' << std::string(2 * depth_, ' '); }

void Json::member(const char* key) {
  if (depth_ != 0) {
    if (!first_) out_ << ',';
    line();
  }
  first_ = false;
  if (key != nullptr) {
    quote(key);
    out_ << ": ";
  }
}

void Json::quote(const std::string& text) {
  out_ << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out_ << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out_ << escape;
    } else {
      out_ << c;
    }
  }
  out_ << '"';
}

}  // namespace tool
