// The same test on devices that differ in what planning and encoding make of a batch.
#pragma once

#include "fixture.hpp"

namespace brontes::test {

/// As the device is, staged, with small workgroups and grids, so that products are cut into parts, and with every way
/// to reach memory that the device has.
template <class Test>
void on_devices(const Test& test) {
  test(shared_device());
  DeviceOptions staged = checked_options();
  staged.simulate.staged_memory = true;
  test(open_device(staged));
  DeviceOptions small = checked_options();
  small.simulate.max_group_count = 30;
  small.simulate.max_group_invocations = 4;
  small.simulate.max_loop_iterations = 6;
  test(open_device(small));
  for (const AccessMode mode : {AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
    DeviceOptions access = checked_options();
    access.access = mode;
    if (auto device = Device::open(access)) test(*device);
  }
}

}  // namespace brontes::test
