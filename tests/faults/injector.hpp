// Does what a program does again and again, each time with something else failing in it.
#pragma once

#include <brontes/brontes.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace brontes::test {

/// What a program does with the library. An object of it is a world of its own, with its devices and buffers.
class Workload {
 public:
  Workload() = default;
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  /// What is made to fail: the first Error of the library, or none. What it computes is compared, and a wrong result
  /// is told to wrong(). Run again after an Error, with nothing failing, it must succeed. It calls nothing that
  /// allocates host memory but the library, whose allocations are made to fail too.
  virtual Error run() = 0;

  /// A device that lives as long as the world does, to ask whether it is lost; null if run() opens its own.
  virtual const Device* device() const { return nullptr; }

  /// The first wrong result since the last call, or null.
  const char* take_wrong() { return std::exchange(wrong_, nullptr); }

 protected:
  void wrong(const char* what) {
    if (wrong_ == nullptr) wrong_ = what;
  }

 private:
  const char* wrong_ = nullptr;
};

/// What a device is opened with: validation as BRONTES_VALIDATION says, no files, messages noted.
DeviceOptions world_options();

struct Injections {
  std::function<std::unique_ptr<Workload>()> make;
  /// About how much processor time it may take. Where a run is slow, as on drivers that compile when a pipeline is
  /// made, only every n-th failure is injected. A soak injects them all.
  double seconds = 2;
  /// Also host allocations; not for workloads with allocations of their own.
  bool host = true;
};

/// Fails every Vulkan call of a run with every result it can have, once, from then on and as a lost device, and every
/// host allocation, once and from then on. Checks after each: no crash and no hang, an Error or a right result, no
/// validation message, a retry that succeeds or a device that says it is lost; and at the end no object left.
void inject(const std::string& name, const Injections& injections);

/// How many failures were injected so far.
std::size_t injected();

}  // namespace brontes::test
