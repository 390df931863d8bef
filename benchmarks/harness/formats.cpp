#include "formats.hpp"

#include "report_json.hpp"

namespace brontes::bench {
namespace {

template <void (*write)(std::ostream&, const Report&)>
void write_last(std::ostream& out, const std::vector<Report>& reports) {
  write(out, reports.back());
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> table{
      {"--json", "everything, for `compare` and `report`", write_last<write_json>},
      {"--google", "Google Benchmark's JSON, which its compare.py reads", write_last<write_google>},
      {"--github", "github-action-benchmark, customSmallerIsBetter", write_last<write_github>},
      {"--bencher", "Bencher Metric Format: times and counts", write_last<write_bencher>},
      {"--pyperf", "pyperf's JSON", write_last<write_pyperf>},
      {"--csv", "a table of times", write_last<write_csv>},
      {"--html", "a page with charts: roofline, rates, chains, history", write_html},
  };
  return table;
}

std::vector<std::string> format_options() {
  std::vector<std::string> options;
  for (const Format& format : formats()) options.emplace_back(format.option);
  return options;
}

std::string format_help() {
  std::string text;
  for (const Format& format : formats()) {
    std::string line = std::string("  ") + format.option + " FILE";
    line.resize(20, ' ');
    text += line + format.summary + "\n";
  }
  return text;
}

std::string Outputs::open(const tool::Parsed& parsed) {
  for (const Format& format : formats()) {
    const std::string path = parsed.option(format.option);
    if (path.empty()) continue;
    if (path == "-") {
      if (to_stdout_) return "only one format can go to stdout";
      to_stdout_ = true;
    }
    auto file = std::make_unique<tool::OutputFile>();
    if (!file->open(path)) return "cannot write " + path;
    files_.push_back({&format, path, std::move(file)});
  }
  return {};
}

std::string Outputs::write(const std::vector<Report>& reports) {
  std::string problem;
  for (File& f : files_) {
    f.format->write(f.file->stream(), reports);
    if (!f.file->commit() && problem.empty()) problem = "could not write all of " + f.path;
  }
  return problem;
}

}  // namespace brontes::bench
