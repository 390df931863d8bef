// Writing for people: emphasis where there is a terminal, and what several commands print alike.
#pragma once

#include "json.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>

#include <string>

namespace tool {

/// Bold on a terminal, unless NO_COLOR is set; else the text as it is.
std::string bold(const std::string& text);
/// The same, in the colour of a warning.
std::string warning(const std::string& text);

/// Whether stderr is a terminal, where a line can be drawn over.
bool error_is_terminal();

/// Prints `brontes: <code>: <message>` to stderr. Returns `failure`.
int report(const brontes::Error& error);

/// "1.3.255" from Vulkan's packed form.
std::string api_version(const brontes::DeviceInfo& device);

/// With its dashes.
std::string uuid_text(const brontes::DeviceInfo& device);

/// What commands say of a device in JSON, as members of an object.
void put_device(Json& json, const brontes::DeviceInfo& device);

/// The device's name, kind and driver; a banner if it is a CPU driver.
void print_device(const brontes::DeviceInfo& device);

}  // namespace tool
