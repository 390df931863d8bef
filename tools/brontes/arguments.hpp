// Reading a subcommand's arguments: positional ones and options that take a value.
#pragma once

#include "commands.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tool {

struct Parsed {
  std::vector<std::string> positional;
  std::map<std::string, std::string> options;  // by name with its dashes
  std::string problem;                         // empty when the arguments are fine

  /// The option's value, or an empty string.
  std::string option(const std::string& name) const;
};

/// Accepts `--name VALUE` and `--name=VALUE` for the given names, and exactly `positional` other arguments.
Parsed parse(const Arguments& arguments, std::initializer_list<const char*> options, std::size_t positional);

/// A whole number in decimal digits that fits in 64 bits.
std::optional<std::uint64_t> parse_number(const std::string& text);

/// Says on stderr what is wrong with the arguments and where to find help. Returns `misuse`.
int report_misuse(const std::string& command, const std::string& problem);

}  // namespace tool
