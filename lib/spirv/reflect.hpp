// What a compute module asks for, read from its SPIR-V at run time. No Vulkan in here.
#pragma once

#include "kernels.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace brontes::spirv {

enum class ConstantKind : std::uint8_t { boolean, integer, floating };

/// A value for a specialization constant.
struct GivenConstant {
  std::uint32_t id;
  std::uint64_t bits;
  ConstantKind kind;
};

struct Binding {
  std::uint32_t number;
  kernels::Access access;
  std::string name;  // of the variable, else of its block; empty if the module has no names
};

struct Constant {
  std::uint32_t id;
  ConstantKind kind;
  std::uint32_t width;  // bits; 1 for a boolean
  std::uint64_t default_bits;
  std::uint64_t bits;  // those in use
  std::string name;
};

struct Reflection {
  std::string entry_point;
  std::uint32_t version = 0;  // as in the header: 0x00010300 for 1.3
  std::vector<std::uint32_t> capabilities;
  std::vector<std::string> extensions;
  std::vector<Binding> bindings;    // ascending
  std::vector<Constant> constants;  // ascending
  std::uint32_t push_bytes = 0;     // a multiple of 4
  std::array<std::uint32_t, 3> local_size{};
  std::uint64_t shared_bytes = 0;
  bool subgroups = false;
  /// The module with ordinary constants in place of specialization constants, and a literal workgroup size.
  std::vector<std::uint32_t> module;
};

/// Reads a module. An empty `entry_point` stands for the only compute entry point.
///
/// Takes any words, in time and memory proportional to their number. What is wrong with them is an Error:
/// invalid_argument if they are no SPIR-V or no compute module of storage buffers, unsupported for what is valid
/// elsewhere. This is no complete validator: what it accepts is well-formed as far as it reads, which is every
/// instruction's length and ids, but not every type rule.
///
/// A binding's access comes from NonWritable and NonReadable on the variable or on all members of its block, and
/// otherwise from the loads, stores and atomics there are. A binding that nothing touches counts as read.
Result<Reflection> reflect(Span<const std::uint32_t> words, const std::string& entry_point = {},
                           Span<const GivenConstant> constants = {});

/// What a device and the library can do.
struct Limits {
  std::uint32_t version = 0x00010500;
  std::vector<std::uint32_t> capabilities;
  std::vector<std::string> extensions;
  std::uint32_t bindings = 8;
  std::uint32_t binding_number = 255;
  std::uint32_t push_bytes = 128;
  std::array<std::uint32_t, 3> local_size{128, 128, 64};
  std::uint32_t invocations = 128;
  std::uint32_t shared_bytes = 16384;
};

/// Why the module cannot be used within the limits, if so: unsupported, or limit_exceeded.
Error check(const Reflection& module, const Limits& limits);

/// "Int64", or "number 4433" for one without a name here.
std::string capability_name(std::uint32_t capability);

}  // namespace brontes::spirv
