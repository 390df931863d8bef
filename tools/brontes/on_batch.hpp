// What the commands that take a batch file have in common.
#pragma once

#include "batch_file.hpp"
#include "commands.hpp"
#include "input_error.hpp"
#include "terminal.hpp"

#include <brontes/device.hpp>

#include <cstdio>
#include <iostream>
#include <string>

namespace tool {

/// The device that --device asks for.
inline brontes::Result<brontes::Device> open_device(const Parsed& parsed) {
  brontes::DeviceOptions options;
  options.select = parsed.option("--device");
  return brontes::Device::open(options);
}

/// Opens the device, reads the file that is the only positional argument, and calls body(device, file), which returns
/// the exit status.
template <class Body>
int on_batch(const char* command, const Parsed& parsed, Body body) {
  if (!parsed.problem.empty()) return report_misuse(command, parsed.problem);
  const auto device = open_device(parsed);
  if (!device) return report(device.error());
  try {
    BatchFile file = read_batch(parsed.positional[0], *device);
    return body(*device, file);
  } catch (const InputError& e) {
    std::fprintf(stderr, "brontes %s: %s\n", command, e.what());
    return misuse;
  }
}

/// A whole number above 0; `otherwise` where the option is not given, 0 where it is something else.
inline std::uint64_t positive(const Parsed& parsed, const char* option, std::uint64_t otherwise) {
  const std::string text = parsed.option(option);
  if (text.empty()) return otherwise;
  return parse_number(text).value_or(0);
}

}  // namespace tool
