// Reading JSON, strictly as RFC 8259 has it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };
  struct Member;

  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<JsonValue> items;  // of an array
  std::vector<Member> members;   // of an object, in their order
  std::size_t line = 1;          // where it begins

  /// A member of an object; null if there is none.
  const JsonValue* find(std::string_view name) const;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

/// "a string", "an array"
const char* describe(JsonValue::Kind kind);

/// One value and nothing behind it. Throws InputError with the line: for what is no JSON, for a name that an object has
/// twice, for numbers that no double holds, and for more than 100 levels.
JsonValue read_json(std::string_view text);

}  // namespace tool
