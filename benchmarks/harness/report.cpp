#include "report.hpp"

#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace brontes::bench {
namespace {

std::vector<double> of_runs(const std::vector<Run>& runs, double Run::*value) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(run.*value);
  return values;
}

// Ratios go by the cases of all runs.
void renew(Ratio& ratio, const Report& report) {
  const CaseResult* variant = report.find(ratio.group + "/" + ratio.variant);
  const CaseResult* baseline = report.find(ratio.group + "/" + ratio.baseline);
  if (variant == nullptr || baseline == nullptr) return;
  ratio.by_median = baseline->median() / variant->median();
  ratio.by_minimum = baseline->minimum() / variant->minimum();
}

// What a run was kept from reaching, another may have reached.
void add_best(Limits& limits, const Limits& more) {
  for (double Limits::*value : {&Limits::flops, &Limits::bytes, &Limits::host_flops, &Limits::host_bytes}) {
    limits.*value = std::max(limits.*value, more.*value);
  }
}

void add(std::vector<Remark>& remarks, const std::vector<Remark>& more) {
  for (const Remark& remark : more) {
    const auto same = [&](const Remark& known) { return known.name == remark.name; };
    if (std::none_of(remarks.begin(), remarks.end(), same)) remarks.push_back(remark);
  }
}

}  // namespace

void add_least(Counts& counts, const Counts& more) {
  for (const auto& [name, value] : more) {
    const auto [at, is_new] = counts.emplace(name, value);
    if (!is_new) at->second = std::min(at->second, value);
  }
}

void Run::summarise() {
  median = median_of(samples);
  minimum = *std::min_element(samples.begin(), samples.end());
  std::vector<double> errors;
  for (const double sample : samples) errors.push_back(std::abs(sample - median) / sample);
  error = median_of(std::move(errors));
}

Counts CaseResult::all_counts() const {
  Counts all = counts;
  if (host_instructions > 0) all["host_instructions"] = host_instructions;
  return all;
}

double CaseResult::median() const { return median_of(of_runs(runs, &Run::median)); }

double CaseResult::minimum() const {
  const std::vector<double> minima = of_runs(runs, &Run::minimum);
  return *std::min_element(minima.begin(), minima.end());
}

double CaseResult::error() const {
  return runs.size() == 1 ? runs.front().error : spread_of(of_runs(runs, &Run::median)) / 2;
}

double CaseResult::gigabytes_per_second() const { return median() > 0 ? bytes / median() * 1e-9 : 0; }
double CaseResult::gigaflops() const { return median() > 0 ? flops / median() * 1e-9 : 0; }

namespace {

struct AtLimit {
  double arithmetic = 0, memory = 0;  // seconds
};

AtLimit at_limit(const CaseResult& c, const Limits& limits) {
  const bool host = c.counts.empty();
  const double flops = host ? limits.host_flops : limits.flops, bytes = host ? limits.host_bytes : limits.bytes;
  if (flops <= 0 || bytes <= 0) return {};
  return {c.flops / flops, c.bytes / bytes};
}

}  // namespace

double CaseResult::share_of(const Limits& limits) const {
  const AtLimit seconds = at_limit(*this, limits);
  return median() > 0 ? std::max(seconds.arithmetic, seconds.memory) / median() : 0;
}

bool CaseResult::arithmetic_bound(const Limits& limits) const {
  const AtLimit seconds = at_limit(*this, limits);
  return seconds.arithmetic > seconds.memory;
}

const CaseResult* Report::find(const std::string& name) const {
  for (const CaseResult& c : cases) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

Report merge(std::vector<Report> reports) {
  Report all = std::move(reports.front());
  for (auto more = reports.begin() + 1; more != reports.end(); ++more) {
    all.provenance.complete = all.provenance.complete && more->provenance.complete;
    add_best(all.provenance.limits, more->provenance.limits);
    for (CaseResult& c : more->cases) {
      const auto same = [&](const CaseResult& known) { return known.name == c.name; };
      const auto known = std::find_if(all.cases.begin(), all.cases.end(), same);
      if (known == all.cases.end()) {
        all.cases.push_back(std::move(c));
        continue;
      }
      known->runs.insert(known->runs.end(), c.runs.begin(), c.runs.end());
      add_least(known->counts, c.counts);
      if (known->host_instructions == 0) known->host_instructions = c.host_instructions;
    }
    for (const Ratio& ratio : more->ratios) {
      const auto same = [&](const Ratio& r) {
        return r.group == ratio.group && r.variant == ratio.variant && r.baseline == ratio.baseline;
      };
      if (std::none_of(all.ratios.begin(), all.ratios.end(), same)) all.ratios.push_back(ratio);
    }
    add(all.skipped, more->skipped);
    add(all.failed, more->failed);
  }
  for (Ratio& ratio : all.ratios) renew(ratio, all);
  return all;
}

}  // namespace brontes::bench
