// One of everything that a device gives, and every call that needs the device: for devices that can do nothing any
// more.
#pragma once

#include "fixture.hpp"

#include <optional>
#include <string>
#include <vector>

namespace brontes::test {

/// Made while the device works. Destroying it in any order is up to the test.
class Everything {
 public:
  explicit Everything(const DeviceOptions& options);

  struct Answer {
    const char* call;
    Error error;
  };
  /// Calls every entry point that needs the device. Uses no assertions: it also runs in forked processes.
  std::vector<Answer> call_all();

  /// Recording is host-only: what is wrong with it, or nothing.
  std::string record();

  static constexpr unsigned parts = 9;
  /// Destroys one of its parts; the device is part 0.
  void destroy(unsigned part);

  std::optional<Device> device;
  std::optional<Buffer> buffer;
  std::optional<Buffer> other;
  std::optional<Weight> weight;
  std::optional<Batch> executed;  ///< y = -x, run
  std::optional<Batch> pending;   ///< recorded, not run
  std::optional<Program> program;
  std::optional<Submission> submission;  ///< of the program
  std::optional<MatmulCache> cache;      ///< with one weight, "w"

 private:
  Tensor y_, input_, output_, imported_;
};

}  // namespace brontes::test
