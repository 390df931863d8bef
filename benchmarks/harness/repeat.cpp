#include "repeat.hpp"

#include "interrupt.hpp"
#include "process.hpp"
#include "report_json.hpp"
#include "text.hpp"
#include "verbs.hpp"

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string_view>

namespace brontes::bench {

std::vector<Build> running_order(std::size_t repeat, bool two_builds) {
  std::vector<Build> order;
  for (std::size_t i = 0; i < repeat; ++i) {
    if (!two_builds) {
      order.push_back(Build::own);
    } else if (i % 2 == 0) {
      order.insert(order.end(), {Build::own, Build::other});
    } else {
      order.insert(order.end(), {Build::other, Build::own});
    }
  }
  return order;
}

std::string filter_of(const std::vector<std::string>& names) {
  std::string filter;
  for (const std::string& name : names) {
    filter += filter.empty() ? "^(" : "|";
    for (const char c : name) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) filter += '\\';
      filter += c;
    }
  }
  return filter + ")$";
}

Repeated run_repeatedly(const Repetition& repetition) {
  const Scratch scratch;
  Repeated out;
  const std::vector<Build> order = running_order(repetition.repeat, !repetition.other.empty());
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < order.size() && !tool::interrupted(); ++i) {
    const bool own = order[i] == Build::own;
    const std::string& program = own ? repetition.program : repetition.other;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::string line = "run " + std::to_string(i + 1) + " of " + std::to_string(order.size());
    if (i != 0) {
      line += ", " + format_duration(elapsed) + " of about " +
              format_duration(elapsed / static_cast<double>(i) * static_cast<double>(order.size()));
    }
    std::cerr << folded(line + ": " + (own ? "this build" : program), 2) << std::endl;

    const std::string file = scratch.file(std::to_string(i) + ".json");
    tool::Arguments arguments = repetition.arguments;
    if (!repetition.filter.empty()) arguments.insert(arguments.end(), {"--filter", repetition.filter});
    if (own) arguments.insert(arguments.end(), repetition.own_arguments.begin(), repetition.own_arguments.end());
    arguments.insert(arguments.end(), {"--json", file});
    const int status = run_program(program, arguments);
    if (status != exit_good && status != exit_failed && status != tool::exit_interrupted) {
      throw std::runtime_error(program + " ended with status " + std::to_string(status));
    }
    out.good = out.good && status != exit_failed;
    out.interrupted = out.interrupted || status == tool::exit_interrupted;
    // A run that was cut short has cases less, and would pass for a build without them.
    if (status == tool::exit_interrupted) break;
    (own ? out.own : out.other).push_back(read_report(file));
  }
  out.interrupted = out.interrupted || tool::interrupted();
  return out;
}

}  // namespace brontes::bench
