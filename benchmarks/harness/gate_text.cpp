#include "gate_text.hpp"

#include "text.hpp"

#include <algorithm>
#include <string>

namespace brontes::bench {
namespace {

// More lines of a dump than that help nobody.
constexpr std::size_t most_lines = 12;

std::string percent(double ratio) { return format("%+.0f%%", (ratio - 1) * 100); }

std::string arrow(const CountChange& c) {
  return c.name + " " + std::to_string(c.old) + " -> " + std::to_string(c.now);
}

template <class Print>
void each_line(const CaseChange& change, Print print) {
  const std::size_t shown = std::min(change.lines.size(), most_lines);
  for (std::size_t i = 0; i < shown; ++i) print(change.lines[i]);
  if (shown < change.lines.size()) print("... " + std::to_string(change.lines.size() - shown) + " more");
}

std::string summary(const Difference& d) {
  std::size_t grew = 0, shrank = 0;
  for (const CaseChange& c : d.cases) {
    for (const CountChange& count : c.counts) ++(count.grew() ? grew : shrank);
  }
  auto plural = [](std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); };
  std::string text = plural(d.cases.size(), "case") + ": " + plural(grew, "count") + " grew, " +
                     std::to_string(shrank) + " shrank; " + std::to_string(d.count(Change::slower)) + " slower, " +
                     std::to_string(d.count(Change::faster)) + " faster, " + std::to_string(d.count(Change::none)) +
                     " within the noise";
  if (const std::size_t unclear = d.count(Change::unclear); unclear != 0) {
    text += ", " + std::to_string(unclear) + " unclear: more runs would tell";
  }
  if (const std::size_t unknown = d.count(Change::unknown); unknown != 0) {
    text += ", " + std::to_string(unknown) + " not judged";
  }
  if (!d.broken.empty()) text += "; " + std::to_string(d.broken.size()) + " broken";
  return text;
}

std::string time_of(const CaseChange& c) {
  std::string text = format_seconds(c.old_time) + " -> " + format_seconds(c.new_time) + ", " +
                     percent(c.time.by_minimum) + " by minima, " + percent(c.time.by_median) + " by medians";
  if (c.time.change != Change::unknown) text += ", noise floor " + format("%.0f%%", c.time.floor * 100);
  if (c.of_limit > 0) text += ", now at " + format("%.0f%%", c.of_limit * 100) + " of the limit";
  if (c.instructions != 1) text += ", instructions " + format("%+.2f%%", (c.instructions - 1) * 100);
  return text;
}

}  // namespace

void print_difference(std::ostream& out, const Difference& d) {
  auto line = [&](const std::string& text, std::size_t indent) { out << folded(text, indent) << "\n"; };
  for (const std::string& note : d.notes) line("note: " + note, 6);
  for (const Remark& broken : d.broken) line("BROKEN  " + broken.name + ": " + broken.reason, 8);
  for (const CaseChange& c : d.cases) {
    for (const CountChange& count : c.counts) {
      line((count.grew() ? "GREW    " : "shrank  ") + c.name + ": " + arrow(count), 8);
    }
    if (!c.counts.empty()) each_line(c, [&](const std::string& text) { line("        " + text, 12); });
    if (c.time.change == Change::slower) line("SLOWER  " + c.name + ": " + time_of(c), 8);
    if (c.time.change == Change::faster) line("faster  " + c.name + ": " + time_of(c), 8);
    if (c.time.change == Change::unclear) line("UNCLEAR " + c.name + ": " + time_of(c), 8);
  }
  for (const std::string& name : d.only_old) line("gone    " + name, 8);
  for (const std::string& name : d.only_new) line("new     " + name, 8);
  line(summary(d), 2);
}

void write_markdown(std::ostream& out, const Difference& d, const Report& old, const Report& now) {
  auto named = [](const Provenance& p) { return p.commit.empty() ? p.date : "`" + p.commit.substr(0, 12) + "`"; };
  out << (d.regressed() ? "### Benchmarks: regression\n\n" : "### Benchmarks: no regression\n\n")
      << named(old.provenance) << " and " << named(now.provenance) << " on " << now.provenance.device.name << ", "
      << now.provenance.device.driver << ". " << summary(d) << ".\n";
  for (const std::string& note : d.notes) out << "\n> " << note << "\n";

  bool any = false;
  auto row = [&](const std::string& name, const std::string& what, const std::string& how) {
    if (!any) out << "\n| | case | |\n|---|---|---|\n";
    any = true;
    out << "| " << what << " | `" << name << "` | " << how << " |\n";
  };
  for (const Remark& broken : d.broken) row(broken.name, "**broken**", broken.reason);
  for (const CaseChange& c : d.cases) {
    for (const CountChange& count : c.counts) row(c.name, count.grew() ? "**grew**" : "shrank", arrow(count));
    if (c.time.change == Change::slower) row(c.name, "**slower**", time_of(c));
    if (c.time.change == Change::faster) row(c.name, "faster", time_of(c));
    if (c.time.change == Change::unclear) row(c.name, "unclear", time_of(c));
  }
  for (const std::string& name : d.only_old) row(name, "gone", "");
  for (const std::string& name : d.only_new) row(name, "new", "");

  for (const CaseChange& c : d.cases) {
    if (c.lines.empty()) continue;
    out << "\n<details><summary>plan of <code>" << c.name << "</code></summary>\n\n```diff\n";
    each_line(c, [&](const std::string& text) { out << text << "\n"; });
    out << "```\n\n</details>\n";
  }
}

}  // namespace brontes::bench
