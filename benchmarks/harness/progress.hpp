// How far a run is, for whoever watches.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace brontes::bench {

/// A line on stderr that is replaced again and again; nothing where stderr is no terminal.
class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next step begins: "3 of 20, 0:12 of about 1:20, NAME".
  void next(const std::string& name);
  /// Makes room for other output.
  void clear();

 private:
  std::size_t steps_;
  std::size_t done_ = 0;
  bool shown_ = false;
  bool terminal_;
  std::chrono::steady_clock::time_point begin_;
};

/// The text of such a line, at most `columns` wide.
std::string progress_line(std::size_t step, std::size_t steps, double elapsed, const std::string& name);

}  // namespace brontes::bench
