// Other programs, and a place for their files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace brontes::bench {

/// A folder for the files of a run, gone in the end. Throws std::runtime_error.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Runs a program, found by the PATH if need be, and waits for it. Its exit status, 128 and more for a signal; what it
/// prints to stdout is dropped. Throws std::runtime_error when it cannot be started.
int run_program(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace brontes::bench
