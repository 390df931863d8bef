#include "formats.hpp"
#include "report_json.hpp"
#include "text.hpp"
#include "verbs.hpp"

#include <exception>
#include <iostream>

namespace brontes::bench {

std::string report_help() {
  return "Usage: brontes-bench report FILE.json... [OPTION...]\n"
         "\n"
         "Prints the last of some files of `brontes-bench --json`, or writes it in other formats. Files before it,\n"
         "the oldest first, are its history, which the page with charts shows.\n"
         "\n" +
         format_help() +
         "  --help            print this and stop\n"
         "\n"
         "A FILE of - is stdout. Exit status: 0; 2 for bad arguments, or a file that is none.\n";
}

int report_verb(const tool::Arguments& arguments) {
  const tool::Parsed parsed = tool::parse(arguments, {{"--help", "-h"}, format_options(), std::nullopt});
  if (!parsed.problem.empty()) return misused(parsed.problem, report_help());
  if (parsed.flag("--help") || parsed.flag("-h")) {
    std::cout << report_help();
    return exit_good;
  }
  if (parsed.positional.empty()) return misused("report takes at least one file", report_help());
  std::vector<Report> reports;
  try {
    for (const std::string& path : parsed.positional) reports.push_back(read_report(path));
  } catch (const std::exception& e) {
    std::cerr << "brontes-bench: " << e.what() << "\n";
    return exit_usage;
  }
  Outputs outputs;
  if (const std::string problem = outputs.open(parsed); !problem.empty()) return misused(problem, report_help());
  if (outputs.empty()) print_report(std::cout, reports.back());
  if (const std::string problem = outputs.write(reports); !problem.empty()) {
    std::cerr << "brontes-bench: " << problem << "\n";
    return exit_failed;
  }
  return exit_good;
}

}  // namespace brontes::bench
