#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace tool {

std::string Parsed::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::string() : found->second;
}

Parsed parse(const Arguments& arguments, std::initializer_list<const char*> options, std::size_t positional) {
  Parsed parsed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      parsed.positional.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (std::find(options.begin(), options.end(), name) == options.end()) {
      parsed.problem = "unknown option " + name;
      return parsed;
    }
    if (equals != std::string::npos) {
      parsed.options[name] = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      parsed.options[name] = arguments[++i];
    } else {
      parsed.problem = name + " needs a value";
      return parsed;
    }
  }
  if (parsed.positional.size() != positional) {
    parsed.problem =
        "expected " + std::to_string(positional) + " arguments, got " + std::to_string(parsed.positional.size());
  }
  return parsed;
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return number;
}

int report_misuse(const std::string& command, const std::string& problem) {
  std::fprintf(stderr, "brontes %s: %s\nTry: brontes %s --help\n", command.c_str(), problem.c_str(), command.c_str());
  return misuse;
}

}  // namespace tool
