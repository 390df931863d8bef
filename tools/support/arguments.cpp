#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace tool {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string Parsed::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::string() : found->second;
}

Parsed parse(const Arguments& arguments, const Syntax& syntax) {
  Parsed parsed;
  auto fail = [&](std::string problem) {
    parsed.problem = std::move(problem);
    return parsed;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      parsed.positional.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (has(syntax.flags, name)) {
      if (equals != std::string::npos) return fail(name + " takes no value");
      parsed.flags.insert(name);
    } else if (!has(syntax.options, name)) {
      return fail("unknown option " + name);
    } else if (equals != std::string::npos) {
      parsed.options[name] = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      parsed.options[name] = arguments[++i];
    } else {
      return fail(name + " needs a value");
    }
  }
  const std::size_t got = parsed.positional.size();
  const std::size_t wanted = syntax.positional.value_or(got);
  if (got > wanted) return fail("unexpected argument \"" + parsed.positional[wanted] + "\"");
  if (got < wanted) return fail("expected " + std::to_string(wanted) + " arguments, got " + std::to_string(got));
  return parsed;
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace tool
