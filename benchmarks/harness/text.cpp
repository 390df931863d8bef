#include "text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace brontes::bench {
namespace {

// A share of other processes above which a time is not to be trusted.
constexpr double disturbed = 0.10;

constexpr std::size_t variant_width = 20;

// In seven columns, whatever it is.
std::string rate(double value) { return format(value < 1e4 ? "%.2f" : value < 1e6 ? "%.0f" : "%.1e", value); }

void print_case(std::ostream& out, const CaseResult& c, const Limits& limits) {
  const std::string variant = variant_of(c.name);
  if (variant.size() > variant_width) {
    out << "  " << variant << "\n  " << padded("", variant_width);
  } else {
    out << "  " << padded(variant, variant_width, false);
  }
  // Arithmetic that is one op per element says less than the bytes do.
  const bool arithmetic = c.flops > c.bytes / 4;
  out << padded(format_seconds(c.median()), 9) << padded(format_seconds(c.minimum()), 9)
      << padded(format("%.0f%%", c.error() * 100), 6)
      << padded(c.items > 1 ? format_seconds(c.median() / c.items) + "/" + c.item : "", 17)
      << padded(c.bytes > 0 ? rate(c.gigabytes_per_second()) : "", 8)
      << padded(arithmetic ? rate(c.gigaflops()) : "", 9);
  const double share = c.share_of(limits);
  out << padded(share <= 0 ? "" : share < 10 ? format("%.0f%%", share * 100) : ">999%", 6);
  double others = 0;
  for (const Run& run : c.runs) others = std::max(others, run.others);
  // Two digits, which is what is left of the line.
  if (others > disturbed) out << "  ! others " << format("%.0f%%", std::min(others * 100, 99.0));
  out << "\n";
}

}  // namespace

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string format_seconds(double value) {
  if (value >= 1) return format("%.3g s", value);
  if (value >= 1e-3) return format("%.3g ms", value * 1e3);
  if (value >= 1e-6) return format("%.3g us", value * 1e6);
  return format("%.3g ns", value * 1e9);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<unsigned>(seconds);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%u:%02u:%02u", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%u:%02u", whole / 60, whole % 60);
  }
  return text;
}

std::string padded(std::string text, std::size_t width, bool right) {
  if (text.size() >= width) return text;
  return right ? std::string(width - text.size(), ' ') + text : text + std::string(width - text.size(), ' ');
}

std::string folded(const std::string& text, std::size_t indent) {
  std::string out, line;
  std::size_t at = 0;
  while (at < text.size()) {
    // A word with the spaces before it.
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(at, end - at);
    const bool blank = line.find_first_not_of(' ') == std::string::npos;
    if (!blank && line.size() + word.size() > columns) {
      out += line + "\n";
      line = std::string(indent, ' ') + text.substr(begin, end - begin);
    } else {
      line += word;
    }
    at = end;
  }
  return out + line;
}

std::string group_of(const std::string& case_name) { return case_name.substr(0, case_name.rfind('/')); }
std::string variant_of(const std::string& case_name) { return case_name.substr(case_name.rfind('/') + 1); }

void print_header(std::ostream& out, const Provenance& p) {
  auto line = [&](const std::string& what, const std::string& text) {
    out << folded(padded(what, 10, false) + text, 10) << "\n";
  };
  line("device", p.device.name + " (" + p.device.type + ")");
  line("driver", p.device.driver);
  line("build", p.build.type + ", " + p.build.compiler + (p.commit.empty() ? "" : ", commit " + p.commit));
  line("machine", (p.machine.cpu.empty() ? "" : p.machine.cpu + ", ") + std::to_string(p.machine.cpus) + " CPUs, " +
                      p.machine.simd + ", load " + format("%.2f", p.machine.load));
  if (const Limits& l = p.limits; l.known()) {
    auto rates = [](double flops, double bytes) {
      return format("%.4g GFLOP/s, ", flops * 1e-9) + format("%.3g GB/s", bytes * 1e-9);
    };
    const std::string host = " by multiply-adds and triad, " + std::to_string(l.threads) + " threads";
    line("limit", l.source == "host" ? rates(l.flops, l.bytes) + host
                                     : rates(l.flops, l.bytes) + " by this library's kernels; host: " +
                                           rates(l.host_flops, l.host_bytes) + host);
  }
  for (const Provenance::PeerFacts& peer : p.peers) {
    std::string text = peer.unavailable.empty() ? "" : "not compared: " + peer.unavailable;
    if (peer.unavailable.empty()) {
      for (const auto& [name, value] : peer.facts) text += (text.empty() ? "" : ", ") + name + " " + value;
    }
    line(peer.name, text);
  }
  for (const std::string& warning : p.warnings) line("WARNING", warning);
}

void print_suite(std::ostream& out, const std::string& suite) {
  out << "\n"
      << padded(suite, 2 + variant_width, false) << padded("median", 9) << padded("min", 9) << padded("err", 6)
      << padded("per item", 17) << padded("GB/s", 8) << padded("GFLOP/s", 9) << padded("limit", 6) << "\n";
}

void print_cases(std::ostream& out, const std::vector<CaseResult>& cases, const Limits& limits) {
  std::string group;
  for (const CaseResult& c : cases) {
    if (group_of(c.name) != group) {
      group = group_of(c.name);
      out << group << "\n";
    }
    print_case(out, c, limits);
  }
  out.flush();
}

void print_remarks(std::ostream& out, const std::vector<Remark>& remarks, const char* what) {
  for (const Remark& r : remarks) out << folded(r.name + "  " + what + ": " + r.reason, 4) << "\n";
  out.flush();
}

void print_ratios(std::ostream& out, const std::string& suite, const std::vector<Ratio>& ratios) {
  if (ratios.empty()) return;
  out << "\n" << suite << ", by medians (by minima):\n";
  for (const Ratio& r : ratios) {
    std::string text = "  " + r.group + ": " + r.variant + " is " + format("%.3g", r.by_median) + "x (" +
                       format("%.3g", r.by_minimum) + "x) as fast as " + r.baseline;
    if (r.goal > 0) text += "; goal " + format("%.3g", r.goal) + "x " + (r.met() ? "met" : "MISSED");
    out << folded(text, 6) << "\n";
  }
  out.flush();
}

void print_report(std::ostream& out, const Report& report) {
  print_header(out, report.provenance);
  for (auto first = report.cases.begin(); first != report.cases.end();) {
    const std::string suite = first->suite;
    const auto last = std::find_if(first, report.cases.end(), [&](const CaseResult& c) { return c.suite != suite; });
    print_suite(out, suite);
    print_cases(out, {first, last}, report.provenance.limits);
    std::vector<Ratio> ratios;
    for (const Ratio& ratio : report.ratios) {
      const auto in_group = [&](const CaseResult& c) { return group_of(c.name) == ratio.group; };
      if (std::any_of(first, last, in_group)) ratios.push_back(ratio);
    }
    print_ratios(out, suite, ratios);
    first = last;
  }
  print_remarks(out, report.skipped, "skipped");
  print_remarks(out, report.failed, "FAILED");
  print_instructions(out, report);
}

void print_instructions(std::ostream& out, const Report& report) {
  bool any = false;
  for (const CaseResult& c : report.cases) {
    if (c.host_instructions == 0) continue;
    if (!any) out << "\ninstructions of the host for an iteration, by valgrind:\n";
    any = true;
    const auto count = static_cast<double>(c.host_instructions);
    std::string text = "  " + c.name + ": " + std::to_string(c.host_instructions);
    if (c.items > 1) text += format(", %.0f per ", count / c.items) + c.item;
    out << folded(text, 4) << "\n";
  }
  out.flush();
}

}  // namespace brontes::bench
