#include "report.hpp"

#include "json.hpp"
#include "util/hex.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>

namespace bench {
namespace {

// A share of other processes above which a time is not to be trusted.
constexpr double disturbed = 0.10;

constexpr std::size_t name_width = 56;

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string seconds(double value) {
  if (value >= 1) return format("%.3g s", value);
  if (value >= 1e-3) return format("%.3g ms", value * 1e3);
  if (value >= 1e-6) return format("%.3g us", value * 1e6);
  return format("%.3g ns", value * 1e9);
}

std::string padded(std::string text, std::size_t width, bool right = true) {
  if (text.size() >= width) return text;
  return right ? std::string(width - text.size(), ' ') + text : text + std::string(width - text.size(), ' ');
}

void write_remarks(tool::Json& json, const char* key, const std::vector<GroupResult>& groups,
                   std::vector<Remark> GroupResult::*remarks) {
  json.begin(key, '[');
  for (const GroupResult& group : groups) {
    for (const Remark& remark : group.*remarks) {
      json.begin(nullptr, '{');
      json.put("name", remark.name);
      json.put("reason", remark.reason);
      json.end('}');
    }
  }
  json.end(']');
}

}  // namespace

void print_header(std::ostream& out, const Provenance& p) {
  out << "device    " << p.device.name << " (" << brontes::to_string(p.device.type) << ")\n"
      << "driver    " << p.device.driver << "\n"
      << "build     " << p.build_type << ", " << p.compiler << "\n"
      << "machine   " << (p.cpu.empty() ? "" : p.cpu + ", ") << p.cpus << " CPUs, " << p.simd << ", load "
      << format("%.2f", p.load) << "\n"
      << "openblas  ";
  if (p.openblas_unavailable.empty()) {
    out << p.openblas_core << " kernels, " << p.openblas_threads << " threads\n";
  } else {
    out << "not compared: " << p.openblas_unavailable << "\n";
  }
  for (const std::string& warning : p.warnings) out << "WARNING   " << warning << "\n";
}

void print_suite(std::ostream& out, const std::string& suite) {
  out << "\n"
      << padded(suite, name_width, false) << padded("median", 10) << padded("min", 10) << padded("err", 7)
      << padded("per item", 16) << padded("GB/s", 8) << padded("GFLOP/s", 9) << "\n";
}

void print_group(std::ostream& out, const GroupResult& group) {
  for (const Measurement& m : group.measurements) {
    // Arithmetic that is one op per element says less than the bytes do.
    const bool arithmetic = m.flops > m.bytes / 4;
    out << padded(m.name, name_width, false) << padded(seconds(m.median), 10) << padded(seconds(m.minimum), 10)
        << padded(format("%.0f%%", m.error * 100), 7)
        << padded(m.items > 1 ? seconds(m.median / m.items) + "/" + m.item : "", 16)
        << padded(m.bytes > 0 ? format("%.2f", m.gigabytes_per_second()) : "", 8)
        << padded(arithmetic ? format("%.2f", m.gigaflops()) : "", 9);
    if (m.others > disturbed) out << "  ! others used " << format("%.0f%%", m.others * 100) << " of the CPUs";
    out << "\n";
  }
  for (const Remark& r : group.skipped) out << padded(r.name, name_width, false) << "  skipped: " << r.reason << "\n";
  for (const Remark& r : group.failed) out << padded(r.name, name_width, false) << "  FAILED: " << r.reason << "\n";
  out.flush();
}

void print_ratios(std::ostream& out, const std::string& suite, const std::vector<Ratio>& ratios) {
  if (ratios.empty()) return;
  out << "\n" << suite << ", by medians (by minima):\n";
  for (const Ratio& r : ratios) {
    out << "  " << r.group << ": " << r.variant << " is " << format("%.3g", r.by_median) << "x ("
        << format("%.3g", r.by_minimum) << "x) as fast as " << r.baseline;
    if (r.goal > 0) out << "; goal " << format("%.3g", r.goal) << "x " << (r.met() ? "met" : "MISSED");
    out << "\n";
  }
  out.flush();
}

void write_json(std::ostream& out, const Provenance& p, const std::vector<GroupResult>& groups) {
  tool::Json json(out);
  json.begin(nullptr, '{');
  json.put("format", 1u);
  json.put("brontes", brontes::version());
  json.put("date", p.date);
  json.put("complete", !p.interrupted);

  json.begin("device", '{');
  json.put("name", p.device.name);
  json.put("type", brontes::to_string(p.device.type));
  json.put("cpu_driver", p.device.type == brontes::DeviceType::cpu);
  json.put("driver", p.device.driver);
  json.put("driver_version", p.device.driver_version);
  json.put("vendor_id", p.device.vendor_id);
  json.put("device_id", p.device.device_id);
  json.put("uuid", brontes::util::hex(p.device.uuid));
  json.put("api_version", p.device.api_version);
  json.put("subgroup_size", p.device.subgroup_size);
  json.put("mapped_memory", p.device.mapped_memory);
  json.end('}');

  json.begin("build", '{');
  json.put("type", p.build_type);
  json.put("compiler", p.compiler);
  json.put("assertions", p.assertions);
  json.put("validation", p.validation);
  json.end('}');

  json.begin("machine", '{');
  json.put("cpu", p.cpu);
  json.put("cpus", p.cpus);
  json.put("simd", p.simd);
  json.put("load", p.load);
  json.end('}');

  json.begin("openblas", '{');
  json.put("available", p.openblas_unavailable.empty());
  json.put("reason", p.openblas_unavailable);
  json.put("core", p.openblas_core);
  json.put("config", p.openblas_config);
  json.put("threads", static_cast<double>(p.openblas_threads));
  json.end('}');

  json.begin("options", '{');
  json.put("quick", p.quick);
  json.put("filter", p.filter);
  json.end('}');

  json.begin("warnings", '[');
  for (const std::string& warning : p.warnings) json.put(nullptr, warning);
  json.end(']');

  json.begin("cases", '[');
  for (const GroupResult& group : groups) {
    for (const Measurement& m : group.measurements) {
      json.begin(nullptr, '{');
      json.put("name", m.name);
      json.put("suite", m.suite);
      json.put("unit", "s");
      json.put("median", m.median);
      json.put("min", m.minimum);
      json.put("error", m.error);
      json.put("epochs", static_cast<std::uint64_t>(m.samples.size()));
      json.put("iterations", m.iterations);
      json.put("items", m.items);
      json.put("item", m.item);
      json.put("bytes", m.bytes);
      json.put("flops", m.flops);
      json.put("gb_per_s", m.gigabytes_per_second());
      json.put("gflop_per_s", m.gigaflops());
      json.put("others", m.others);
      json.begin("samples", '[');
      for (const double sample : m.samples) json.put(nullptr, sample);
      json.end(']');
      json.end('}');
    }
  }
  json.end(']');

  json.begin("ratios", '[');
  for (const GroupResult& group : groups) {
    for (const Ratio& r : group.ratios) {
      json.begin(nullptr, '{');
      json.put("group", r.group);
      json.put("variant", r.variant);
      json.put("baseline", r.baseline);
      json.put("by_median", r.by_median);
      json.put("by_min", r.by_minimum);
      if (r.goal > 0) {
        json.put("goal", r.goal);
        json.put("met", r.met());
      }
      json.end('}');
    }
  }
  json.end(']');

  write_remarks(json, "skipped", groups, &GroupResult::skipped);
  write_remarks(json, "failed", groups, &GroupResult::failed);
  json.end('}');
  out << "\n";
}

}  // namespace bench
