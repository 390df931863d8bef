// Reading a program's arguments: flags, options that take a value, and the rest. By getopt_long() of the C library, so
// that they may be given as with any other program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tool {

using Arguments = std::vector<std::string>;

/// What a program takes. Names have their dashes.
struct Syntax {
  std::vector<std::string> flags;
  std::vector<std::string> options;       // that take a value
  std::optional<std::size_t> positional;  // how many there must be; any number unless told
};

struct Parsed {
  std::set<std::string> flags;
  std::map<std::string, std::string> options;
  std::vector<std::string> positional;
  std::string problem;  // empty when the arguments are fine

  bool flag(const std::string& name) const { return flags.count(name) != 0; }
  /// The option's value, or an empty string. The last one counts.
  std::string option(const std::string& name) const;
};

/// Accepts `--flag`, `--option VALUE` and `--option=VALUE`, in any order, and any beginning of a name that fits only
/// one. What begins with no dash, or is nothing but one, is positional, and so is everything behind `--`.
///
/// Thread-safety: one thread at a time, as with getopt_long().
Parsed parse(const Arguments& arguments, const Syntax& syntax);

/// A whole number in decimal digits that fits in 64 bits.
std::optional<std::uint64_t> parse_number(const std::string& text);

}  // namespace tool
