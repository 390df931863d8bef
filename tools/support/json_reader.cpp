#include "json_reader.hpp"

#include "input_error.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

namespace tool {
namespace {

constexpr int deepest = 100;

void append_utf8(std::string& to, std::uint32_t code) {
  if (code < 0x80) {
    to += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::uint32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  to += static_cast<char>(leads[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) to += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  JsonValue document() {
    JsonValue value = this->value(0);
    space();
    if (at_ != text_.size()) fail("something behind the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("line " + std::to_string(line_) + ": " + what);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }

  void space() {
    for (; !at_end(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    }
  }

  bool take(char c) {
    space();
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, const char* where) {
    if (!take(c)) fail(std::string("expected '") + c + "' " + where + found());
  }

  std::string found() const { return at_end() ? ", found the end" : std::string(", found '") + text_[at_] + "'"; }

  JsonValue value(int depth) {
    if (depth > deepest) fail("more than 100 levels");
    space();
    JsonValue value;
    value.line = line_;
    switch (peek()) {
      case '{': object(value, depth); return value;
      case '[': array(value, depth); return value;
      case '"':
        value.kind = JsonValue::Kind::string;
        value.string = string();
        return value;
      case 't': word("true", value, JsonValue::Kind::boolean); break;
      case 'f': word("false", value, JsonValue::Kind::boolean); break;
      case 'n': word("null", value, JsonValue::Kind::null); break;
      default: number(value); return value;
    }
    return value;
  }

  void word(std::string_view word, JsonValue& value, JsonValue::Kind kind) {
    if (text_.substr(at_, word.size()) != word) fail("expected a value" + found());
    at_ += word.size();
    value.kind = kind;
    value.boolean = word == "true";
  }

  void number(JsonValue& value) {
    const std::size_t begin = at_;
    auto digits = [&] {
      const std::size_t first = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ - first;
    };
    if (peek() == '-') ++at_;
    const bool zero = peek() == '0';
    const std::size_t whole = digits();
    if (whole == 0) {
      at_ = begin;
      fail("expected a value" + found());
    }
    if (zero && whole > 1) fail("a number with a leading 0");
    if (peek() == '.') {
      ++at_;
      if (digits() == 0) fail("expected a digit behind the point" + found());
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) fail("expected a digit in the exponent" + found());
    }
    value.kind = JsonValue::Kind::number;
    const auto [end, problem] = std::from_chars(text_.data() + begin, text_.data() + at_, value.number);
    if (problem != std::errc() || !std::isfinite(value.number)) {
      fail("no double holds " + std::string(text_.substr(begin, at_ - begin)));
    }
  }

  std::uint32_t hex4() {
    std::uint32_t code = 0;
    const std::string_view four = text_.substr(at_, 4);
    const auto [end, problem] = std::from_chars(four.data(), four.data() + four.size(), code, 16);
    if (four.size() != 4 || problem != std::errc() || end != four.data() + 4) fail("expected four hex digits");
    at_ += 4;
    return code;
  }

  void escape(std::string& to) {
    if (at_end()) fail("a string without an end");
    const char c = text_[at_++];
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = letters.find(c); known != std::string_view::npos) {
      to += meanings[known];
      return;
    }
    if (c != 'u') fail(std::string("there is no escape \\") + c);
    std::uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const std::uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code < 0xe000) {
      fail("half of a surrogate pair");
    }
    append_utf8(to, code);
  }

  std::string string() {
    ++at_;
    std::string text;
    for (;;) {
      if (at_end()) fail("a string without an end");
      const char c = text_[at_++];
      if (c == '"') return text;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
      if (c == '\\') {
        escape(text);
      } else {
        text += c;
      }
    }
  }

  void array(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::array;
    ++at_;
    if (take(']')) return;
    do value.items.push_back(this->value(depth + 1));
    while (take(','));
    expect(']', "or ',' in an array");
  }

  void object(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::object;
    ++at_;
    if (take('}')) return;
    do {
      space();
      if (peek() != '"') fail("expected a name in quotes" + found());
      std::string name = string();
      if (value.find(name) != nullptr) fail("the object has \"" + name + "\" twice");
      expect(':', "behind a name");
      value.members.push_back({std::move(name), this->value(depth + 1)});
    } while (take(','));
    expect('}', "or ',' in an object");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const auto& [known, value] : members) {
    if (known == name) return &value;
  }
  return nullptr;
}

const char* describe(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::null: return "null";
    case JsonValue::Kind::boolean: return "true or false";
    case JsonValue::Kind::number: return "a number";
    case JsonValue::Kind::string: return "a string";
    case JsonValue::Kind::array: return "an array";
    case JsonValue::Kind::object: break;
  }
  return "an object";
}

JsonValue read_json(std::string_view text) { return Reader(text).document(); }

}  // namespace tool
