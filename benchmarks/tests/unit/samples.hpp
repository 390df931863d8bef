// Reports out of thin air: what a machine with a given kind of noise would have measured.
#pragma once

#include "report.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace brontes::bench::test {

enum class Noise {
  quiet,   // a few percent, from epoch to epoch
  shared,  // neighbours: now and then an epoch takes up to four times as long
  moody,   // whole runs are up to 12% slower than others
  wild,    // every third run is up to twice as slow as the others, which differ by 20%
};

class Machine {
 public:
  Machine(Noise noise, std::uint32_t seed) : noise_(noise), random_(seed) {}

  Run run(double seconds) {
    double mood = 1;
    if (noise_ == Noise::moody) mood += 0.12 * uniform();
    if (noise_ == Noise::wild) mood += 0.2 * uniform() + (uniform() < 0.33 ? uniform() : 0);
    Run run;
    run.iterations = 10;
    for (int epoch = 0; epoch < 15; ++epoch) {
      double sample = seconds * mood * (1 + 0.03 * uniform());
      if (noise_ == Noise::shared && uniform() < 0.4) sample *= 1 + 3 * uniform();
      run.samples.push_back(sample);
    }
    run.summarise();
    return run;
  }

  CaseResult result(const std::string& name, double seconds, std::size_t runs = 5) {
    CaseResult c;
    c.name = name;
    c.suite = name.substr(0, name.find('/'));
    c.item = "run";
    for (std::size_t i = 0; i < runs; ++i) c.runs.push_back(run(seconds));
    c.counts = {{"submits", 1}, {"dispatches", 3}, {"barriers", 2}, {"device_allocations", 0}, {"host_allocations", 7}};
    c.dump = "plan: 3 ops\n#0 relu\nbarrier RAW on %1 #0 -> #1\n#1 scale\n";
    return c;
  }

  /// `slowed`: by how much the third case takes longer.
  Report report(std::size_t cases, double slowed = 1, std::size_t runs = 5) {
    Report report;
    report.provenance.device.name = "imagined";
    report.provenance.machine.cpus = 2;
    report.provenance.interleaved = true;
    for (std::size_t i = 0; i < cases; ++i) {
      const double seconds = 1e-5 * static_cast<double>(i + 1) * (i == 2 ? slowed : 1);
      report.cases.push_back(result("work/size-" + std::to_string(i) + "/op", seconds, runs));
    }
    return report;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  Noise noise_;
  std::mt19937 random_;
};

}  // namespace brontes::bench::test
