// What is wrong with something a program was given to read.
#pragma once

#include <stdexcept>

namespace tool {

/// Thrown by the readers of files; the message says where and what.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tool
