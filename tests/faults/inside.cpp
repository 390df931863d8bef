// Whatever fails in profiles, traces and shadow checks.
#include "worlds.hpp"

#include <optional>
#include <string>
#include <vector>

namespace brontes::test {
namespace {

class OfAProgram : public OnDevice {
 public:
  explicit OfAProgram(const DeviceOptions& options) : OnDevice(options), data_(counting(64)), out_(64) {
    Batch batch(device_);
    y_ = batch.softmax(batch.relu(batch.matmul(batch.upload(data_, {8, 8}), batch.upload(data_, {8, 8}))));
    program_.emplace(batch.compile().value());
    if (program_->run() || program_->read(y_, expected_)) wrong("the first run");
  }

 protected:
  Error check_run() {
    if (Error e = program_->run()) return e;
    if (Error e = program_->read(y_, out_)) return e;
    if (out_ != expected_) wrong("a run");
    return {};
  }

  std::vector<float> data_;
  std::vector<float> out_;
  std::vector<float> expected_ = std::vector<float>(64);
  Tensor y_;
  std::optional<Program> program_;
};

class Profiling final : public OfAProgram {
 public:
  using OfAProgram::OfAProgram;
  Error run() override {
    ProfileOptions options;
    options.runs = 2;
    const auto profile = program_->profile(options);
    if (!profile) return profile.error();
    if (profile->entries.empty()) wrong("a profile without entries");
    if (profile->text().empty() || profile->json().empty()) return Error(Errc::out_of_memory, "no text");
    return check_run();
  }
};

class Tracing final : public OfAProgram {
 public:
  using OfAProgram::OfAProgram;
  Error run() override {
    // One that could not be stopped goes on.
    if (!tracing_) {
      if (Error e = device_.start_trace()) return e;
      tracing_ = true;
    }
    if (Error e = check_run()) return e;
    if (Error e = check_run()) return e;
    const auto trace = device_.stop_trace();
    if (!trace) return trace.error();
    tracing_ = false;
    if (trace->find("traceEvents") == std::string::npos) wrong("a trace without events");
    return {};
  }

 private:
  bool tracing_ = false;
};

class ShadowChecking final : public OfAProgram {
 public:
  using OfAProgram::OfAProgram;
  Error run() override {
    const auto report = program_->shadow_check();
    if (!report) return report.error();
    if (!report->ok || report->checked == 0) wrong("a shadow check");
    return check_run();
  }
};

}  // namespace

TEST_CASE("whatever fails in a profile", "[faults][inside]") { inject_variants<Profiling>("profile"); }
TEST_CASE("whatever fails while tracing", "[faults][inside]") { inject_variants<Tracing>("trace"); }
TEST_CASE("whatever fails in a shadow check", "[faults][inside]") { inject_variants<ShadowChecking>("shadow check"); }

}  // namespace brontes::test
