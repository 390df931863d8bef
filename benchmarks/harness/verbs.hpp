// What the program does, by the first argument. Each verb has a file of its own.
#pragma once

#include "arguments.hpp"

#include <brontes/bench.hpp>

#include <string>

namespace brontes::bench {

inline constexpr int exit_good = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_regression = 3;

int run_verb(const tool::Arguments& arguments, const Contents& contents, const std::string& program);
int compare_verb(const tool::Arguments& arguments);
int report_verb(const tool::Arguments& arguments);

std::string run_help();
extern const char compare_help[];
std::string report_help();

/// Says what is wrong with the arguments, and how they should be.
int misused(const std::string& problem, const std::string& help);

}  // namespace brontes::bench
