#include "progress.hpp"

#include "text.hpp"

#include <unistd.h>

#include <iostream>

namespace brontes::bench {

std::string progress_line(std::size_t step, std::size_t steps, double elapsed, const std::string& name) {
  std::string line = std::to_string(step) + " of " + std::to_string(steps) + ", " + format_duration(elapsed);
  if (step > 1) {
    line += " of about " + format_duration(elapsed / static_cast<double>(step - 1) * static_cast<double>(steps));
  }
  line += ", " + name;
  // Past the last column a terminal would begin another line.
  return line.substr(0, columns - 1);
}

Progress::Progress(std::size_t steps)
    : steps_(steps), terminal_(isatty(STDERR_FILENO) == 1), begin_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::next(const std::string& name) {
  ++done_;
  if (!terminal_) return;
  clear();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  std::cerr << progress_line(done_, steps_, elapsed, name) << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace brontes::bench
