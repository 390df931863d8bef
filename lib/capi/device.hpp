// Options of a device, for opening one and for adopting one.
#pragma once

#include <brontes/brontes.h>
#include <brontes/device.hpp>

namespace brontes::capi {

Error device_options(const char* call, const brontes_device_options* given, DeviceOptions& to);

}  // namespace brontes::capi
