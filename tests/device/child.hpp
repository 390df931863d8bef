// Runs this test program again as a child, for what a process can only do once or must do many times
// at once: other environments, and several processes on one cache file.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace brontes::test {

struct ChildResult {
  int status = -1;     // the exit status; negative for a signal
  std::string output;  // stdout
};

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Runs the named job of child.cpp in a new process with these variables added to the environment.
ChildResult run_child(const std::vector<std::string>& job, const Environment& environment = {});

/// The same, `count` at once.
std::vector<ChildResult> run_children(int count, const std::vector<std::string>& job,
                                      const Environment& environment = {});

/// Called by main(): the exit status of the job, or -1 when the arguments name none.
int child_main(int argc, char** argv);

}  // namespace brontes::test
