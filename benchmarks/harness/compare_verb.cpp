#include "gate.hpp"
#include "gate_text.hpp"
#include "numbers.hpp"
#include "output_file.hpp"
#include "report_json.hpp"
#include "verbs.hpp"

#include <exception>
#include <iostream>

namespace brontes::bench {

const char compare_help[] =
    "Usage: brontes-bench compare OLD.json NEW.json [OPTION...]\n"
    "\n"
    "Compares two files of `brontes-bench --json`. Any count that grew is a regression, as counts do not\n"
    "jitter. Times count as different where they differ by more than they do between runs of one build.\n"
    "\n"
    "  --threshold PERCENT  never call times different that are closer (default 10)\n"
    "  --markdown FILE      also write a summary for a pull request; - is stdout, and the text goes to stderr\n"
    "  --help               print this and stop\n"
    "\n"
    "Exit status: 0; 3 for a regression; 2 for bad arguments, or a file that is none.\n";

int compare_verb(const tool::Arguments& arguments) {
  const tool::Parsed parsed = tool::parse(arguments, {{"--help", "-h"}, {"--threshold", "--markdown"}, std::nullopt});
  if (!parsed.problem.empty()) return misused(parsed.problem, compare_help);
  if (parsed.flag("--help") || parsed.flag("-h")) {
    std::cout << compare_help;
    return exit_good;
  }
  if (parsed.positional.size() != 2) {
    return misused("compare takes two files, not " + std::to_string(parsed.positional.size()), compare_help);
  }
  const std::optional<double> threshold = parse_threshold(parsed);
  if (!threshold) return misused("--threshold: not a percentage: " + parsed.option("--threshold"), compare_help);

  Report old, now;
  try {
    old = read_report(parsed.positional[0]);
    now = read_report(parsed.positional[1]);
  } catch (const std::exception& e) {
    std::cerr << "brontes-bench: " << e.what() << "\n";
    return exit_usage;
  }
  const std::string path = parsed.option("--markdown");
  tool::OutputFile markdown;
  if (!path.empty() && !markdown.open(path)) return misused("cannot write " + path, compare_help);

  const Difference difference = difference_of(old, now, *threshold);
  print_difference(path == "-" ? std::cerr : std::cout, difference);
  if (markdown.is_open()) {
    write_markdown(markdown.stream(), difference, old, now);
    if (!markdown.commit()) {
      std::cerr << "brontes-bench: could not write all of " << path << "\n";
      return exit_failed;
    }
  }
  return difference.regressed() ? exit_regression : exit_good;
}

}  // namespace brontes::bench
