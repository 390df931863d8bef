// What the command-line programs share: arguments and JSON.
#include "arguments.hpp"
#include "json.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using tool::parse;
using tool::Parsed;

const tool::Syntax syntax{{"--quick", "-h"}, {"--device", "--json"}, 1};

}  // namespace

TEST_CASE("arguments are flags, options with a value attached or following, and the rest", "[tools]") {
  const Parsed parsed = parse({"--device=a=b", "-", "--json", "--quick", "--quick"}, syntax);
  CHECK(parsed.problem.empty());
  CHECK(parsed.option("--device") == "a=b");
  CHECK(parsed.option("--json") == "--quick");
  CHECK(parsed.flag("--quick"));
  CHECK_FALSE(parsed.flag("-h"));
  CHECK(parsed.positional == std::vector<std::string>{"-"});
  CHECK(parse({"--json", "a", "--json", "b", "x"}, syntax).option("--json") == "b");
  CHECK(parse({}, syntax).option("--json").empty());
}

TEST_CASE("wrong arguments are a problem that names them", "[tools]") {
  CHECK(parse({"--slow", "x"}, syntax).problem == "unknown option --slow");
  CHECK(parse({"--slow=1", "x"}, syntax).problem == "unknown option --slow");
  CHECK(parse({"x", "--device"}, syntax).problem == "--device needs a value");
  CHECK(parse({"--quick=yes", "x"}, syntax).problem == "--quick takes no value");
  CHECK(parse({"x", "y"}, syntax).problem == "unexpected argument \"y\"");
  CHECK(parse({"--quick"}, syntax).problem == "expected 1 arguments, got 0");
  CHECK(parse({"x", "y", ""}, {{}, {}, std::nullopt}).problem.empty());
}

TEST_CASE("a number has digits only and fits in 64 bits", "[tools]") {
  CHECK(tool::parse_number("18446744073709551615") == ~std::uint64_t{0});
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616"}) {
    CHECK_FALSE(tool::parse_number(text));
  }
}

TEST_CASE("JSON has its strings escaped, its members separated and no number that JSON lacks", "[tools]") {
  std::ostringstream out;
  tool::Json json(out);
  json.begin(nullptr, '{');
  json.put("text", "a \"b\" \\ \n");
  json.put("yes", true);
  json.begin("list", '[');
  json.put(nullptr, 0.5);
  json.put(nullptr, std::nan(""));
  json.put(nullptr, 7u);
  json.end(']');
  json.begin("empty", '{');
  json.end('}');
  json.end('}');
  CHECK("\n" + out.str() == R"(
{
  "text": "a \"b\" \\ \u000a",
  "yes": true,
  "list": [
    0.5,
    null,
    7
  ],
  "empty": {}
})");
}
