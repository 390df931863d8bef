// Writing JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

namespace tool {

/// Objects and arrays, one member per line. `key` is null for the elements of an array and for the document itself.
class Json {
 public:
  explicit Json(std::ostream& out) : out_(out) {}

  /// '{' or '[', and '}' or ']'.
  void begin(const char* key, char bracket);
  void end(char bracket);

  void put(const char* key, const std::string& value);
  void put(const char* key, const char* value) { put(key, std::string(value)); }
  void put(const char* key, bool value);
  /// null where it is not finite: JSON has no infinity and no NaN.
  void put(const char* key, double value);
  void put(const char* key, std::uint64_t value);
  void put(const char* key, unsigned value) { put(key, std::uint64_t{value}); }

 private:
  void line();
  void member(const char* key);
  void quote(const std::string& text);

  std::ostream& out_;
  std::size_t depth_ = 0;
  bool first_ = true;
};

}  // namespace tool
