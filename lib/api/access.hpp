// How the library's own code reaches the state behind public classes.
#pragma once

#include "api/guard.hpp"
#include "engine/engine.hpp"
#include "record/graph.hpp"
#include "vk/context.hpp"

#include <brontes/batch.hpp>
#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/program.hpp>
#include <brontes/tensor.hpp>
#include <brontes/weight.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace brontes {

struct DeviceAccess {
  /// Null for a moved-from Device.
  static const std::shared_ptr<engine::Engine>& engine(const Device& device) noexcept { return device.engine_; }
  static std::shared_ptr<vk::Context> context(const Device& device) noexcept {
    return device.engine_ ? device.engine_->context() : nullptr;
  }
  static Device make(std::shared_ptr<engine::Engine> engine) noexcept { return Device(std::move(engine)); }
};

struct BufferAccess {
  /// Null for a moved-from Buffer.
  static const std::shared_ptr<vk::Allocation>& memory(const Buffer& buffer) noexcept { return buffer.memory_; }
  static Buffer make(std::shared_ptr<vk::Allocation> memory, const Shape& shape, DType dtype) noexcept {
    return Buffer(std::move(memory), shape, dtype);
  }
  /// The bytes of a buffer of this shape, or why there can be none.
  static Result<std::uint64_t> bytes_of(const char* call, const Device& device, const Shape& shape, DType dtype);
  /// Zeros, in a VkBuffer that can be used for more than Brontes needs it for.
  static Result<Buffer> create(const char* call, const Device& device, const Shape& shape, DType dtype,
                               std::uint32_t extra_usage);
};

struct WeightAccess {
  template <class Pack>
  static Result<Weight> make(const char* call, const Device& device, std::uint64_t rows, std::uint64_t columns,
                             DType type, Pack pack);
  static Result<Weight> convert(const char* call, const Device& device, const float* data, std::uint64_t rows,
                                std::uint64_t columns, DType type);
  /// Empty for a moved-from Weight.
  static const std::vector<std::shared_ptr<vk::Allocation>>& parts(const Weight& weight) noexcept {
    return weight.parts_;
  }
  static std::uint64_t part_rows(const Weight& weight) noexcept { return weight.part_rows_; }
};

struct SubmissionAccess {
  static Submission make(std::shared_ptr<vk::Context> context, std::uint64_t value) {
    Submission submission;
    submission.context_ = std::move(context);
    submission.value_ = value;
    return submission;
  }
  static const std::shared_ptr<vk::Context>& context(const Submission& s) noexcept { return s.context_; }
  static std::uint64_t value(const Submission& s) noexcept { return s.value_; }
};

struct PrepareOptions;
struct Prepared;

/// Runs with semaphores, which the public classes know nothing of.
struct RunAccess {
  static Result<Prepared> prepare(const Batch& batch, const PrepareOptions& options);
  static Result<Submission> submit(Batch& batch, const vk::Dependencies& dependencies, const vk::Context* of);
  static Error record(Program& program, VkCommandBuffer commands, const vulkan::RecordOptions& options);
  static void set_name(Program& program, const char* name);
  static Result<Submission> submit(Program& program, const vk::Dependencies& dependencies, const vk::Context* of);
};

/// Whose tensors are good: those of one batch since its last reset.
struct TensorOwner {
  std::uint64_t serial = 0;
  std::uint32_t generation = 0;
};

struct TensorAccess {
  static Tensor make(const TensorOwner& owner, record::ValueId id, const record::Value& value) {
    return Tensor(owner.serial, owner.generation, id, value.shape, value.dtype);
  }
  static record::ValueId id(const Tensor& x) noexcept { return x.index_; }
  static bool belongs(const Tensor& x, const TensorOwner& owner) noexcept {
    return x.valid() && x.serial_ == owner.serial && x.generation_ == owner.generation;
  }
  /// Why `x` cannot be used by `op`, if so.
  static Error check(const char* op, const Tensor& x, const TensorOwner& owner) {
    if (!x.valid()) {
      return Error(Errc::invalid_tensor, std::string(op) +
                                             ": the tensor is empty: default-constructed, or the result "
                                             "of an op that failed");
    }
    if (x.serial_ != owner.serial) {
      return Error(Errc::foreign_tensor,
                   std::string(op) + ": the tensor " + to_string(x.shape()) + " belongs to another batch");
    }
    if (x.generation_ != owner.generation) {
      return Error(Errc::stale_tensor,
                   std::string(op) + ": the tensor " + to_string(x.shape()) + " is from before the batch was reset");
    }
    return {};
  }
};

/// Whether elements of a type are seen as T by the host: i32 and masks are integers, f16 floats or their own bits.
template <class T>
bool is_seen_as(DType dtype) noexcept {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint16_t>);
  if constexpr (std::is_same_v<T, float>) return dtype == DType::f32 || dtype == DType::f16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return dtype == DType::f16;
  return dtype == DType::i32 || dtype == DType::mask;
}
template <class T>
const char* name_of() noexcept {
  return std::is_same_v<T, float> ? "f32" : std::is_same_v<T, std::uint16_t> ? "f16" : "i32";
}

/// What read() asks of a value and its output.
template <class T>
Error check_output(const record::Value& value, Span<T> out) {
  const Shape& shape = value.shape;
  if (value.weight) return Error(Errc::invalid_argument, "read: " + to_string(shape) + " is a weight");
  if (!is_seen_as<T>(value.dtype)) {
    return Error(Errc::type_mismatch, "read: the value " + to_string(shape) + " is " + to_string(value.dtype) +
                                          " and the output is " + name_of<T>() + "; use " +
                                          (is_seen_as<float>(value.dtype) ? "read()" : "read_i32()"));
  }
  if (out.data() == nullptr && out.size() != 0) {
    return Error(Errc::null_data, "read: a null pointer for " + std::to_string(out.size()) + " elements");
  }
  if (out.size() != shape.count()) {
    return Error(Errc::shape_mismatch, "read: " + std::to_string(out.size()) + " elements of output for a value of " +
                                           to_string(shape) + ", which has " + std::to_string(shape.count()));
  }
  return {};
}

inline Error not_kept(const Shape& shape) {
  return Error(Errc::not_kept, "read: the value " + to_string(shape) +
                                   " was consumed by other ops and may not exist any more; mark it with keep() before "
                                   "execute()");
}

/// A vector of `count` elements filled by `read`, or the error; memory for it may be lacking.
template <class T, class Read>
Result<std::vector<T>> read_vector(std::uint64_t count, Read read) {
  return guarded("read", [&]() -> Result<std::vector<T>> {
    std::vector<T> out(count);
    if (Error e = read(Span<T>(out))) return e;
    return out;
  });
}

}  // namespace brontes
