// The formats a report can be written in: one table, which the command lines come from.
#pragma once

#include "arguments.hpp"
#include "output_file.hpp"
#include "report.hpp"

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace brontes::bench {

struct Format {
  const char* option;   // "--google"; its value is a file
  const char* summary;  // for --help
  /// The last report is the one in question; those before it are its history, which only some formats show.
  void (*write)(std::ostream& out, const std::vector<Report>& reports);
};

const std::vector<Format>& formats();
/// The options of all of them, and a line for each.
std::vector<std::string> format_options();
std::string format_help();

void write_google(std::ostream& out, const Report& report);
void write_github(std::ostream& out, const Report& report);
void write_bencher(std::ostream& out, const Report& report);
void write_pyperf(std::ostream& out, const Report& report);
void write_csv(std::ostream& out, const Report& report);
void write_html(std::ostream& out, const std::vector<Report>& reports);

/// The files that a command line asks for. They are opened before the work, so that a bad path does not cost a long
/// run, and are there as a whole or not at all.
class Outputs {
 public:
  /// What is wrong, or "".
  std::string open(const tool::Parsed& parsed);
  bool empty() const noexcept { return files_.empty(); }
  /// One of them is stdout: whatever else is printed goes to stderr.
  bool to_stdout() const noexcept { return to_stdout_; }
  /// What is wrong, or "".
  std::string write(const std::vector<Report>& reports);

 private:
  struct File {
    const Format* format;
    std::string path;
    std::unique_ptr<tool::OutputFile> file;
  };
  std::vector<File> files_;
  bool to_stdout_ = false;
};

}  // namespace brontes::bench
