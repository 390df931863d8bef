// Numbers on the command line.
#pragma once

#include "arguments.hpp"

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace brontes::bench {

/// A decimal number above or equal to `least`, and nothing else.
inline std::optional<double> parse_decimal(const std::string& text, double least) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
    return std::nullopt;
  }
  if (used != text.size() || !(value >= least) || value > 1e9) return std::nullopt;
  return value;
}

/// `--threshold` as a fraction; 10% unless told.
inline std::optional<double> parse_threshold(const tool::Parsed& parsed) {
  const std::string text = parsed.option("--threshold");
  if (parsed.options.count("--threshold") == 0) return 0.10;
  const std::optional<double> percent = parse_decimal(text, 0);
  if (!percent) return std::nullopt;
  return *percent / 100;
}

}  // namespace brontes::bench
