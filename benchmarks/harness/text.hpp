// Reports for people: tables that fit a terminal of 100 columns.
#pragma once

#include "measure.hpp"
#include "report.hpp"

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace brontes::bench {

inline constexpr std::size_t columns = 100;

/// "1.23 ms"
std::string format_seconds(double seconds);
/// As printf has it, for one number.
std::string format(const char* pattern, double value);
/// "1:02:03" or "2:03".
std::string format_duration(double seconds);
/// Filled up with spaces, on the left or on the right.
std::string padded(std::string text, std::size_t width, bool right = true);
/// Broken at spaces so that no line is longer than `columns`; lines after the first begin with `indent` spaces. A word
/// that is longer by itself stays whole.
std::string folded(const std::string& text, std::size_t indent);

void print_header(std::ostream& out, const Provenance& provenance);
void print_suite(std::ostream& out, const std::string& suite);
void print_cases(std::ostream& out, const std::vector<CaseResult>& cases, const Limits& limits);
void print_remarks(std::ostream& out, const std::vector<Remark>& remarks, const char* what);
/// The small table at the end of a suite.
void print_ratios(std::ostream& out, const std::string& suite, const std::vector<Ratio>& ratios);

/// What valgrind counted, if it did.
void print_instructions(std::ostream& out, const Report& report);

/// All of a report that was made before.
void print_report(std::ostream& out, const Report& report);

/// The group that a case belongs to, and its variant.
std::string group_of(const std::string& case_name);
std::string variant_of(const std::string& case_name);

}  // namespace brontes::bench
