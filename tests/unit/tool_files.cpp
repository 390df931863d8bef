// What the command reads: JSON and numpy's files. What is not right is refused, with a reason.
#include "input_error.hpp"
#include "json_reader.hpp"
#include "npy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace {

using tool::JsonValue;
using tool::Npy;
using tool::read_json;
using tool::read_npy;
using tool::write_npy;

// Why it is refused; empty if it is not.
template <class Read>
std::string refusal(Read read) {
  try {
    read();
  } catch (const tool::InputError& e) {
    return e.what();
  }
  return {};
}

std::string refusal_of_json(const std::string& text) {
  return refusal([&] { read_json(text); });
}

}  // namespace

TEST_CASE("JSON is read as it is written", "[tools]") {
  const JsonValue value =
      read_json(" {\"a\": [1, -2.5e3, true, null],\n\"b\\u00e9\\n\": {\"c\": \"\\ud83d\\ude00\"}} ");
  REQUIRE(value.kind == JsonValue::Kind::object);
  const JsonValue* a = value.find("a");
  REQUIRE(a != nullptr);
  REQUIRE(a->items.size() == 4);
  CHECK(a->items[0].number == 1);
  CHECK(a->items[1].number == -2500);
  CHECK(a->items[2].boolean);
  CHECK(a->items[3].kind == JsonValue::Kind::null);
  const JsonValue* b = value.find("b\xc3\xa9\n");
  REQUIRE(b != nullptr);
  CHECK(b->line == 2);
  CHECK(b->find("c")->string == "\xf0\x9f\x98\x80");
  CHECK(value.find("z") == nullptr);
  CHECK(read_json("[]").items.empty());
  CHECK(read_json("{}").members.empty());
}

TEST_CASE("what is no JSON is refused with its line", "[tools]") {
  CHECK(refusal_of_json("{\"a\": 1,\n\n \"a\": 2}") == "line 3: the object has \"a\" twice");
  for (const char* text :
       {"",          " ",       "{",           "[",      "[1,]", "{\"a\":1,}", "{a: 1}", "{\"a\" 1}", "01", "-",
        "1.",        ".5",      "1e",          "+1",     "tru",  "nul",        "NaN",    "Infinity",  "\"", "\"\\",
        "\"\\u12\"", "\"\\q\"", "\"\\udc00\"", "\"\n\"", "1 2",  "[1 2]",      "'a'",    "1e400",     "//", "[1]]"}) {
    INFO(text);
    CHECK(refusal_of_json(text).substr(0, 5) == "line ");
  }
  CHECK(refusal_of_json(std::string(99, '[') + std::string(99, ']')).empty());
  CHECK_FALSE(refusal_of_json(std::string(150, '[') + std::string(150, ']')).empty());
  CHECK_FALSE(refusal_of_json(std::string(100'000, '[')).empty());
}

TEST_CASE("a .npy file that is written is read again", "[tools]") {
  Npy floats;
  floats.shape = {2, 3};
  floats.floats = {1, -2, 3.5f, 0, 1e30f, -0.25f};
  const std::string bytes = write_npy(floats);
  CHECK((bytes.size() - 24) % 64 == 0);
  const Npy same = read_npy(bytes);
  CHECK(same.type == Npy::Type::f32);
  CHECK(same.shape == floats.shape);
  CHECK(same.floats == floats.floats);

  Npy integers;
  integers.type = Npy::Type::i32;
  integers.shape = {3};
  integers.integers = {-1, 0, 2147483647};
  CHECK(read_npy(write_npy(integers)).integers == integers.integers);

  Npy masks;
  masks.type = Npy::Type::boolean;
  masks.shape = {0, 4};
  const Npy empty = read_npy(write_npy(masks));
  CHECK(empty.type == Npy::Type::boolean);
  CHECK(empty.shape == masks.shape);
  CHECK(empty.integers.empty());
}

TEST_CASE("every .npy file that is cut off is refused", "[tools]") {
  Npy array;
  array.shape = {5};
  array.floats = {1, 2, 3, 4, 5};
  const std::string bytes = write_npy(array);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length);
    CHECK_FALSE(refusal([&] { read_npy(std::string_view(bytes).substr(0, length)); }).empty());
  }
  CHECK_FALSE(refusal([&] { read_npy(bytes + "x"); }).empty());
}

TEST_CASE("a .npy file of another order, type, version or impossible size is refused", "[tools]") {
  Npy array;
  array.shape = {2};
  array.floats = {1, 2};
  const std::string bytes = write_npy(array);
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = bytes;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return refusal([&] { read_npy(text.replace(at, from.size(), to)); });
  };
  CHECK(changed("False", "True ").find("Fortran") != std::string::npos);
  CHECK(changed("<f4", ">f4").find(">f4") != std::string::npos);
  CHECK(changed("<f4", "<c8").find("<c8") != std::string::npos);
  CHECK(changed("(2,)", "(3,)").find("bytes of data") != std::string::npos);
  CHECK(changed("'shape'", "'shapf'").find("no 'shape'") != std::string::npos);
  CHECK_FALSE(changed("(2,), }", "(99999999999999999999,), }").empty());
  CHECK_FALSE(changed("\x01", "\x07").empty());
}
