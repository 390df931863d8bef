#include "gate.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace brontes::bench {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

Times times_of(const CaseResult& c) {
  Times times;
  for (const Run& run : c.runs) {
    times.medians.push_back(run.median);
    times.minima.push_back(run.minimum);
    times.epochs = std::min(times.epochs, run.samples.size());
  }
  return times;
}

double instructions_of(const CaseResult& c) {
  std::vector<double> counted;
  for (const Run& run : c.runs) {
    if (run.instructions > 0) counted.push_back(run.instructions);
  }
  return counted.empty() ? 0 : median_of(std::move(counted));
}

// Counts that only one of them knows are from another version of the harness.
std::vector<CountChange> changes_of(const Counts& old, const Counts& now) {
  std::vector<CountChange> changes;
  for (const auto& [name, value] : old) {
    const auto found = now.find(name);
    if (found != now.end() && found->second != value) changes.push_back({name, value, found->second});
  }
  return changes;
}

// What the noise of a case is like, by the median of all that can be judged.
double usual_noise_of(const std::vector<std::pair<const CaseResult*, const CaseResult*>>& both) {
  std::vector<double> noise;
  for (const auto& [old, now] : both) {
    const Times before = times_of(*old), after = times_of(*now);
    if (can_be_judged(before) && can_be_judged(after)) noise.push_back(noise_of(before, after));
  }
  return noise.empty() ? 0 : median_of(std::move(noise));
}

std::vector<std::string> notes_of(const Report& old, const Report& now, bool judged) {
  std::vector<std::string> notes;
  auto compare = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) notes.push_back(std::string("another ") + what + ": " + a + " and " + b);
  };
  const Provenance& a = old.provenance;
  const Provenance& b = now.provenance;
  compare("device", a.device.name, b.device.name);
  compare("driver", a.device.driver, b.device.driver);
  compare("CPU", a.machine.cpu, b.machine.cpu);
  compare("build type", a.build.type, b.build.type);
  compare("compiler", a.build.compiler, b.build.compiler);
  if (!a.complete || !b.complete) notes.emplace_back("a run was interrupted: cases are missing");
  if (!judged) {
    notes.push_back("times are not judged: that takes " + std::to_string(least_runs) +
                    " runs per file (run --repeat 5)");
  } else if (!a.interleaved || !b.interleaved) {
    notes.emplace_back("the runs were not interleaved: a slow hour looks like a slow build (run --against)");
  }
  return notes;
}

}  // namespace

bool CaseChange::counts_grew() const {
  return std::any_of(counts.begin(), counts.end(), [](const CountChange& c) { return c.grew(); });
}

bool Difference::regressed() const {
  return !broken.empty() || std::any_of(cases.begin(), cases.end(), [](const CaseChange& c) { return c.regressed(); });
}

std::size_t Difference::count(Change change) const {
  const auto same = [&](const CaseChange& c) { return c.time.change == change; };
  return static_cast<std::size_t>(std::count_if(cases.begin(), cases.end(), same));
}

std::vector<std::string> Difference::unclear() const {
  std::vector<std::string> names;
  for (const CaseChange& c : cases) {
    if (c.time.change == Change::unclear) names.push_back(c.name);
  }
  return names;
}

std::vector<std::string> changed_lines(const std::string& old, const std::string& now) {
  std::vector<std::string> a = lines_of(old), b = lines_of(now);
  // What they begin and end with alike is not worth a table.
  const auto [from_a, from_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  a.erase(a.begin(), from_a);
  b.erase(b.begin(), from_b);
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.pop_back();
    b.pop_back();
  }
  // longest[i][j]: the longest common subsequence of a from i and b from j.
  std::vector<std::vector<std::uint32_t>> longest(a.size() + 1, std::vector<std::uint32_t>(b.size() + 1));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      longest[i][j] = a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  std::vector<std::string> changed;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i;
      ++j;
    } else if (i < a.size() && (j == b.size() || longest[i + 1][j] >= longest[i][j + 1])) {
      changed.push_back("- " + a[i++]);
    } else {
      changed.push_back("+ " + b[j++]);
    }
  }
  return changed;
}

Difference difference_of(const Report& old, const Report& now, double threshold) {
  Difference out;
  std::vector<std::pair<const CaseResult*, const CaseResult*>> both;
  const auto failed_in = [](const Report& report, const std::string& name) {
    // A group that fails as a whole is named instead of its cases.
    return std::find_if(report.failed.begin(), report.failed.end(),
                        [&](const Remark& r) { return r.name == name || name.rfind(r.name + "/", 0) == 0; });
  };
  for (const CaseResult& c : old.cases) {
    if (const CaseResult* same = now.find(c.name)) {
      both.emplace_back(&c, same);
    } else if (const auto failed = failed_in(now, c.name); failed != now.failed.end()) {
      out.broken.push_back({c.name, failed->reason});
    } else {
      out.only_old.push_back(c.name);
    }
  }
  for (const CaseResult& c : now.cases) {
    if (old.find(c.name) == nullptr) out.only_new.push_back(c.name);
  }

  out.usual_noise = usual_noise_of(both);
  for (const auto& [before, after] : both) {
    CaseChange& change = out.cases.emplace_back();
    change.name = before->name;
    change.counts = changes_of(before->counts, after->counts);
    const std::uint64_t was = before->host_instructions, is = after->host_instructions;
    if (was > 0 && is > 0) {
      const double apart = std::abs(static_cast<double>(is) - static_cast<double>(was));
      if (apart > std::max(instruction_slack, instruction_tolerance * static_cast<double>(was))) {
        change.counts.push_back({"host_instructions", was, is});
      }
    }
    if (!change.counts.empty()) change.lines = changed_lines(before->dump, after->dump);
    change.old_time = before->median();
    change.new_time = after->median();
    change.of_limit = after->share_of(now.provenance.limits);
    change.time = judge(times_of(*before), times_of(*after), threshold, out.usual_noise);
    const double instructions = instructions_of(*before);
    if (instructions > 0 && instructions_of(*after) > 0) change.instructions = instructions_of(*after) / instructions;
  }
  out.notes = notes_of(old, now, out.count(Change::unknown) < out.cases.size() || out.cases.empty());
  return out;
}

}  // namespace brontes::bench
