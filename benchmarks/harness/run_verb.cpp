#include "callgrind.hpp"
#include "formats.hpp"
#include "gate.hpp"
#include "gate_text.hpp"
#include "interrupt.hpp"
#include "numbers.hpp"
#include "repeat.hpp"
#include "report_json.hpp"
#include "session.hpp"
#include "text.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <regex>

namespace brontes::bench {
namespace {

// What tells a process under valgrind to count and do nothing else. Not for people.
constexpr const char* counting = "--counting";

struct RunOptions {
  Session session;
  std::size_t repeat = 1;
  std::string against, against_json, markdown;
  double threshold = 0;
  bool instructions = false;
  bool list = false;
  bool help = false;
};

// What is wrong with the arguments, or "".
std::string understand(const tool::Parsed& parsed, RunOptions& options) {
  if (!parsed.problem.empty()) return parsed.problem;
  for (const auto& [name, value] : parsed.options) {
    if (value.empty()) return name + " needs a value that is not empty";
  }
  Session& session = options.session;
  session.selection.suites = parsed.positional;
  session.selection.quick = parsed.flag("--quick");
  session.selection.filter = parsed.option("--filter");
  session.commit = parsed.option("--commit");
  options.instructions = parsed.flag("--instructions");
  options.list = parsed.flag("--list");
  options.help = parsed.flag("--help") || parsed.flag("-h");
  options.against = parsed.option("--against");
  options.against_json = parsed.option("--against-json");
  options.markdown = parsed.option("--markdown");
  try {
    std::regex(session.selection.filter, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    return "--filter: not a regular expression: " + session.selection.filter + ": " + e.what();
  }
  if (session.selection.quick) session.effort = {3, 1, 0.002, 0.2};
  if (const std::string budget = parsed.option("--budget"); !budget.empty()) {
    const std::optional<double> seconds = parse_decimal(budget, 1e-9);
    if (!seconds) return "--budget: not a number of seconds: " + budget;
    session.effort.budget = *seconds;
  }
  if (const std::string repeat = parsed.option("--repeat"); !repeat.empty()) {
    const std::optional<std::uint64_t> number = tool::parse_number(repeat);
    if (!number || *number == 0 || *number > 1000) return "--repeat: not a number from 1 to 1000: " + repeat;
    options.repeat = static_cast<std::size_t>(*number);
  }
  const std::optional<double> threshold = parse_threshold(parsed);
  if (!threshold) return "--threshold: not a percentage: " + parsed.option("--threshold");
  options.threshold = *threshold;
  if (options.against.empty() && !(options.against_json + options.markdown).empty()) {
    return "--against-json and --markdown go with --against";
  }
  return {};
}

// The program itself, even if it was found by the PATH.
std::string own_path(const std::string& program) {
  std::error_code problem;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", problem);
  return problem ? program : path.string();
}

Repetition repetition_of(const tool::Parsed& parsed, const RunOptions& options, const std::string& program) {
  Repetition repetition;
  repetition.program = own_path(program);
  repetition.other = options.against;
  repetition.repeat = options.repeat;
  repetition.filter = options.session.selection.filter;
  if (const std::string budget = parsed.option("--budget"); !budget.empty()) {
    repetition.arguments.insert(repetition.arguments.end(), {"--budget", budget});
  }
  if (options.session.selection.quick) repetition.arguments.emplace_back("--quick");
  for (const std::string& suite : parsed.positional) repetition.arguments.push_back(suite);
  if (!options.session.commit.empty()) repetition.own_arguments = {"--commit", options.session.commit};
  return repetition;
}

// Longer ones are about the device. Under valgrind everything takes some 50 times as long.
constexpr double longest_counted = 0.005;

// Has valgrind count the instructions of the cases that are short enough, of this build or of another.
void add_instructions(const std::string& program, Report& report) {
  std::vector<std::string> names;
  for (const CaseResult& c : report.cases) {
    if (!c.counts.empty() && c.minimum() <= longest_counted) names.push_back(c.name);
  }
  if (names.empty()) return;
  std::cerr << folded("counting the instructions of " + std::to_string(names.size()) + " cases with valgrind", 2)
            << std::endl;
  try {
    const InstructionCounts counts = run_under_valgrind(program, {"run", counting, "--filter", filter_of(names)});
    for (CaseResult& c : report.cases) {
      if (const auto found = counts.find(c.name); found != counts.end()) c.host_instructions = found->second;
    }
  } catch (const std::exception& e) {
    std::cerr << folded(std::string("brontes-bench: instructions are not counted: ") + e.what(), 2) << std::endl;
  }
}

int finish(Outputs& outputs, const Report& report, bool good, bool interrupted) {
  if (const std::string problem = outputs.write({report}); !problem.empty()) {
    std::cerr << "brontes-bench: " << problem << "\n";
    return exit_failed;
  }
  if (interrupted) {
    std::cerr << "brontes-bench: interrupted; " << report.cases.size() << " cases are done"
              << (outputs.empty() ? "\n" : " and saved\n");
    return tool::exit_interrupted;
  }
  return good ? exit_good : exit_failed;
}

// Files besides those of the formats, opened before the work.
struct Extra {
  tool::OutputFile other, markdown;

  std::string open(const RunOptions& options) {
    if (!options.against_json.empty() && !other.open(options.against_json)) {
      return "cannot write " + options.against_json;
    }
    if (!options.markdown.empty() && !markdown.open(options.markdown)) return "cannot write " + options.markdown;
    return {};
  }
};

// Whether the new build is worse.
bool compare_builds(const Report& old, const Report& now, const RunOptions& options, Extra& extra, std::ostream& text) {
  const Difference difference = difference_of(old, now, options.threshold);
  text << "\nfrom " << options.against << " to this build:\n";
  print_difference(text, difference);
  if (extra.other.is_open()) {
    write_json(extra.other.stream(), old);
    if (!extra.other.commit()) throw std::runtime_error("could not write all of " + options.against_json);
  }
  if (extra.markdown.is_open()) {
    write_markdown(extra.markdown.stream(), difference, old, now);
    if (!extra.markdown.commit()) throw std::runtime_error("could not write all of " + options.markdown);
  }
  return difference.regressed();
}

// Appends the runs of `more` to those of `all`.
void append(Repeated& all, Repeated more) {
  std::move(more.own.begin(), more.own.end(), std::back_inserter(all.own));
  std::move(more.other.begin(), more.other.end(), std::back_inserter(all.other));
  all.good = all.good && more.good;
  all.interrupted = all.interrupted || more.interrupted;
}

// Runs that leave a case unclear are not the last word: such cases run again, and only they, up to so many times as
// often as was asked for. Twice as many runs each time, so that there are few looks at them.
constexpr std::size_t most_effort = 8;

void settle_unclear(Repetition repetition, const RunOptions& options, Repeated& repeated) {
  std::size_t runs = options.repeat;
  while (!repeated.interrupted && runs < most_effort * options.repeat) {
    const std::vector<std::string> unclear =
        difference_of(merge(repeated.other), merge(repeated.own), options.threshold).unclear();
    if (unclear.empty()) return;
    std::cerr << folded(std::to_string(unclear.size()) + (unclear.size() == 1 ? " case is" : " cases are") +
                            " unclear after " + std::to_string(runs) + " runs of each build: running again",
                        2)
              << std::endl;
    repetition.filter = filter_of(unclear);
    repetition.repeat = std::min(runs, most_effort * options.repeat - runs);
    append(repeated, run_repeatedly(repetition));
    runs += repetition.repeat;
  }
}

int run_in_turn(const Repetition& repetition, const RunOptions& options, Outputs& outputs, Extra& extra,
                std::ostream& text) {
  Repeated repeated = run_repeatedly(repetition);
  if (repeated.own.empty() || (!options.against.empty() && repeated.other.empty())) {
    std::cerr << "brontes-bench: interrupted before a run was done\n";
    return tool::exit_interrupted;
  }
  // Fewer runs are not judged, and somebody who asks for them wants no more.
  if (!options.against.empty() && options.repeat >= least_runs) settle_unclear(repetition, options, repeated);
  Report own = merge(std::move(repeated.own));
  own.provenance.interleaved = !options.against.empty();
  own.provenance.complete = !repeated.interrupted;
  if (options.instructions && !repeated.interrupted) add_instructions(repetition.program, own);
  print_report(text, own);
  bool worse = false;
  if (!options.against.empty()) {
    Report other = merge(std::move(repeated.other));
    other.provenance.interleaved = true;
    other.provenance.complete = !repeated.interrupted;
    if (options.instructions && !repeated.interrupted) add_instructions(repetition.other, other);
    worse = compare_builds(other, own, options, extra, text);
  }
  const int status = finish(outputs, own, repeated.good, repeated.interrupted);
  return status == exit_good && worse ? exit_regression : status;
}

}  // namespace

std::string run_help() {
  return "Usage: brontes-bench [run] [OPTION...] [SUITE...]\n"
         "       brontes-bench compare OLD.json NEW.json [OPTION...]\n"
         "       brontes-bench report FILE.json... [OPTION...]\n"
         "\n"
         "Times and counts on the Vulkan device that BRONTES_DEVICE names, or the best one. Results are checked\n"
         "before they are timed. Without a SUITE (chain, ops, ...) it runs all. compare and report have a --help\n"
         "of their own.\n"
         "\n"
         "  --filter REGEX    only the cases whose names match, e.g. 'chain/.*/1000/'\n"
         "  --budget SECONDS  roughly how long one case may take; slow ones get fewer epochs (default 4)\n"
         "  --quick           small sizes and few epochs: does it work, not how fast\n"
         "  --repeat N        run N times, each in a process of its own: compare needs 3 to judge times\n"
         "  --against BINARY  take turns with another build (A B B A ...) and compare it with this one; with\n"
         "                    --repeat, of each, and cases that this leaves unclear again, up to 8 times as often.\n"
         "                    --threshold and --markdown are those of compare\n"
         "  --against-json FILE  write what the other build did\n"
         "  --instructions    also have valgrind count the instructions of the host in short cases, which compare\n"
         "                    takes for counts\n"
         "  --commit ID       what is measured, for the files (default: what a CI says, or was built)\n"
         "  --list            print the names of the cases and stop\n"
         "  --help            print this and stop\n"
         "\n"
         "Results go to files, of which one may be -, stdout; the table then goes to stderr:\n"
         "\n" +
         format_help() +
         "\n"
         "Ctrl-C ends the run after the current iteration and keeps what is done.\n"
         "\n"
         "Exit status: 0; 1 when a case failed, gave a wrong result, or no device was found; 2 for bad arguments;\n"
         "3 for a regression (--against); 130 when interrupted.\n";
}

int run_verb(const tool::Arguments& arguments, const Contents& contents, const std::string& program) {
  tool::Syntax syntax{
      {"--list", "--quick", "--instructions", counting, "--help", "-h"},
      {"--filter", "--budget", "--repeat", "--against", "--against-json", "--markdown", "--threshold", "--commit"},
      std::nullopt};
  for (const std::string& option : format_options()) syntax.options.push_back(option);
  const tool::Parsed parsed = tool::parse(arguments, syntax);
  RunOptions options;
  if (const std::string wrong = understand(parsed, options); !wrong.empty()) return misused(wrong, run_help());
  if (options.help) {
    std::cout << run_help();
    return exit_good;
  }
  std::vector<SelectedGroup> groups;
  try {
    groups = select(contents.suites, options.session.selection);
  } catch (const std::invalid_argument& e) {
    return misused(e.what(), run_help());
  }
  if (options.list) {
    for (const SelectedGroup& group : groups) {
      for (const std::string& name : group.names()) std::cout << name << "\n";
    }
    return exit_good;
  }

  Outputs outputs;
  Extra extra;
  if (const std::string wrong = outputs.open(parsed); !wrong.empty()) return misused(wrong, run_help());
  if (const std::string wrong = extra.open(options); !wrong.empty()) return misused(wrong, run_help());
  std::ostream& text = outputs.to_stdout() || options.markdown == "-" ? std::cerr : std::cout;
  tool::watch_interrupts();
  if (options.repeat > 1 || !options.against.empty()) {
    return run_in_turn(repetition_of(parsed, options, program), options, outputs, extra, text);
  }
  if (parsed.flag(counting)) {
    count_session(groups);
    return tool::interrupted() ? tool::exit_interrupted : exit_good;
  }
  SessionResult result = run_session(contents, groups, options.session, text);
  if (options.instructions && !result.interrupted) {
    add_instructions(own_path(program), result.report);
    print_instructions(text, result.report);
  }
  return finish(outputs, result.report, result.good, result.interrupted);
}

}  // namespace brontes::bench
