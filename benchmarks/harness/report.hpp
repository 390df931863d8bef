// What a run found, for people and for programs.
#pragma once

#include "measure.hpp"

#include <brontes/device.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace bench {

class Blas;

/// Where numbers come from; without it they mean nothing.
struct Provenance {
  brontes::DeviceInfo device;
  std::string date;  // UTC, ISO 8601: when the run began
  bool interrupted = false;
  std::string build_type, compiler;
  bool assertions = false, validation = false, quick = false;
  std::string filter;
  std::string cpu;
  unsigned cpus = 0;
  std::string simd;
  double load = 0;  // at the start; negative where unknown
  std::string openblas_unavailable, openblas_core, openblas_config;
  int openblas_threads = 0;
  std::vector<std::string> warnings;
};

void print_header(std::ostream& out, const Provenance& provenance);
void print_suite(std::ostream& out, const std::string& suite);
void print_group(std::ostream& out, const GroupResult& group);
/// The small table at the end of a suite.
void print_ratios(std::ostream& out, const std::string& suite, const std::vector<Ratio>& ratios);

/// docs/benchmarking.md describes the format.
void write_json(std::ostream& out, const Provenance& provenance, const std::vector<GroupResult>& groups);

}  // namespace bench
