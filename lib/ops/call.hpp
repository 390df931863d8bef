// call: a kernel of the user's own.
#pragma once

#include "record/graph.hpp"
#include "spirv/reflect.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace brontes::ops {

/// What was reflected, in the form that library kernels have. Dispatches point to it, so it does not move.
class UserKernel {
 public:
  UserKernel(spirv::Reflection reflection, std::string name);
  UserKernel(const UserKernel&) = delete;
  UserKernel& operator=(const UserKernel&) = delete;

  const std::string& name() const noexcept { return name_; }
  const spirv::Reflection& reflection() const noexcept { return reflection_; }
  const kernels::Kernel& kernel() const noexcept { return kernel_; }
  std::size_t input_count() const noexcept { return input_count_; }
  std::size_t output_count() const noexcept { return output_count_; }

 private:
  std::string name_;
  spirv::Reflection reflection_;  // its module has what the specialised kernel runs
  std::vector<kernels::Binding> bindings_;
  kernels::Kernel kernel_{};
  std::size_t input_count_ = 0;
  std::size_t output_count_ = 0;
};

struct CallOptions {
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  Span<const std::byte> push;
  std::array<std::uint32_t, 3> max_groups{65535, 65535, 65535};
};

/// Records a dispatch of the kernel: `inputs` for the bindings it reads, `outputs` for those it writes, each in the
/// order of binding numbers. One that it does both with takes one of each.
Result<record::ValueId> call(record::Graph& graph, std::shared_ptr<const UserKernel> kernel,
                             Span<const record::ValueId> inputs, Span<const record::ValueType> outputs,
                             const CallOptions& options);

}  // namespace brontes::ops
