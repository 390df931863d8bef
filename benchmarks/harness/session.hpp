// A run in this process: which cases, on which device, and what came of it.
#pragma once

#include "measure.hpp"
#include "report.hpp"

#include <brontes/bench.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace brontes::bench {

struct Selection {
  std::vector<std::string> suites;  // empty means all
  std::string filter;               // a regular expression; empty means all
  bool quick = false;
};

/// A group, and which of its variants are to run.
struct SelectedGroup {
  std::string suite;
  Group group;
  std::vector<bool> wanted;

  std::vector<std::string> names() const;
};

/// The cases to run. Throws std::invalid_argument when there is no such suite, or no case at all.
std::vector<SelectedGroup> select(const std::vector<Suite>& suites, const Selection& selection);

struct Session {
  Selection selection;
  Effort effort;
  std::string commit;
};

/// Opens the device, runs the cases, and prints what it finds to `text` on the way. Throws Failure when there is no
/// device.
struct SessionResult {
  Report report;
  bool good = true;  // no case failed, and validation had nothing to say
  bool interrupted = false;
};
SessionResult run_session(const Contents& contents, const std::vector<SelectedGroup>& groups, const Session& session,
                          std::ostream& text);

/// What a process under valgrind does for run_under_valgrind(): counts the instructions of the cases.
void count_session(const std::vector<SelectedGroup>& groups);

}  // namespace brontes::bench
