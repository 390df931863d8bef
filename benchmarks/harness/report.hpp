// What runs found: plain data, which every format is written from and the own JSON is read into.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace brontes::bench {

/// One run of a case, in one process.
struct Run {
  std::vector<double> samples;   // seconds per iteration, one per epoch, in the order they were taken
  std::uint64_t iterations = 0;  // of one epoch
  double median = 0, minimum = 0;
  double error = 0;         // MdAPE: the median of |sample - median| / sample, as nanobench has it
  double others = 0;        // Bystander::others() while its group ran
  double instructions = 0;  // of the calling thread for an iteration, 0 where the system does not count them

  /// From its samples.
  void summarise();
};

/// By name. What they mean is in counts.cpp.
using Counts = std::map<std::string, std::uint64_t>;

/// What is the less of each count: one that differs is what it is at its best.
void add_least(Counts& counts, const Counts& more);

/// What the machine can do at best, per second. 0: not known.
struct Limits {
  double flops = 0, bytes = 0;            // of the device
  std::string source;                     // where they come from: "host" (a CPU driver), "kernels" (measure_limits())
  double host_flops = 0, host_bytes = 0;  // multiply-adds and triad on all CPUs
  unsigned threads = 0;                   // of the host

  bool known() const { return flops > 0 && bytes > 0; }
};

struct CaseResult {
  std::string name, suite;
  double bytes = 0, flops = 0, items = 1;
  std::string item;
  std::vector<Run> runs;                // at least one
  Counts counts;                        // of one iteration; empty where they say nothing
  std::uint64_t host_instructions = 0;  // of an iteration on the calling thread, by valgrind; 0: not counted
  std::string dump;

  /// Counts, and with them the instructions.
  Counts all_counts() const;

  double median() const;   // of the runs' medians
  double minimum() const;  // of all samples
  double error() const;    // of one run; the spread of the medians where there are more
  double gigabytes_per_second() const;
  double gigaflops() const;

  /// The time that its arithmetic or its bytes take at the limit, whichever is longer, divided by its median: 1 is as
  /// fast as can be, and above 1 is what never left the caches or only reads. Cases without counts are the host's own.
  /// 0: not known.
  double share_of(const Limits& limits) const;
  /// Whether it is arithmetic that takes longer at the limit.
  bool arithmetic_bound(const Limits& limits) const;
};

struct Ratio {
  std::string group, variant, baseline;
  double by_median = 0;  // baseline's time over variant's: how many times as fast it is
  double by_minimum = 0;
  double goal = 0;

  bool met() const { return by_median >= goal; }
};

struct Remark {
  std::string name;
  std::string reason;
};

/// Where numbers come from; without it they mean nothing.
struct Provenance {
  std::string brontes;  // version of the library
  std::string commit;   // what was measured; empty where nobody said
  std::string date;     // UTC, ISO 8601: when the run began
  bool complete = true;
  bool interleaved = false;  // with the runs of another build
  struct {
    std::string name, type, driver, uuid;
    bool cpu_driver = false, mapped_memory = false;
    std::uint32_t driver_version = 0, vendor_id = 0, device_id = 0, api_version = 0, subgroup_size = 0;
  } device;
  struct {
    std::string type, compiler;
    bool assertions = false, validation = false;
  } build;
  struct {
    std::string cpu, simd;
    unsigned cpus = 0;
    double load = 0;  // at the start; negative where unknown
  } machine;
  struct PeerFacts {
    std::string name, unavailable;
    std::vector<std::pair<std::string, std::string>> facts;
  };
  std::vector<PeerFacts> peers;
  Limits limits;
  bool quick = false;
  std::string filter;
  std::vector<std::string> warnings;
};

struct Report {
  Provenance provenance;
  std::vector<CaseResult> cases;
  std::vector<Ratio> ratios;
  std::vector<Remark> skipped;
  std::vector<Remark> failed;  // a wrong result, or an error

  const CaseResult* find(const std::string& name) const;
};

/// Several runs of the same build as one report, with all runs of each case. `reports` must not be empty.
Report merge(std::vector<Report> reports);

}  // namespace brontes::bench
