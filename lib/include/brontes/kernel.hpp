// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace brontes {

/// A value for a specialization constant: `{0, 16u}`, `{1, 0.5f}`, `{2, true}`. Its kind must be the constant's:
/// boolean, integer (of either sign) or float.
struct KernelConstant {
  enum class Kind : std::uint8_t { boolean, integer, floating };

  KernelConstant(std::uint32_t constant_id, bool value) noexcept
      : id(constant_id), bits(value ? 1 : 0), kind(Kind::boolean) {}
  KernelConstant(std::uint32_t constant_id, std::int32_t value) noexcept
      : id(constant_id), bits(static_cast<std::uint64_t>(value)) {}
  KernelConstant(std::uint32_t constant_id, std::uint32_t value) noexcept : id(constant_id), bits(value) {}
  KernelConstant(std::uint32_t constant_id, float value) noexcept : id(constant_id), kind(Kind::floating) {
    std::uint32_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    bits = word;
  }

  std::uint32_t id;
  std::uint64_t bits = 0;
  Kind kind = Kind::integer;
};

struct KernelOptions {
  /// What dumps and messages call the kernel: up to 64 letters, digits and any of "_-.:". Empty: the name of the entry
  /// point, or "kernel" if that is "main".
  std::string name;
  /// Empty: the module's only compute entry point. A module with several needs one named here; the bindings and
  /// constants are then still those of the whole module.
  std::string entry_point;
  /// Those not named keep the defaults of the module.
  std::vector<KernelConstant> constants;
  /// Binding numbers of buffers whose old contents count although the kernel only stores to them, such as the
  /// destination of a scatter: they are then read and written.
  std::vector<std::uint32_t> updates;
};

enum class KernelAccess : std::uint8_t { read, write, read_write };

/// "read", "write" or "read_write". Never null.
BRONTES_API const char* to_string(KernelAccess access) noexcept;

/// A storage buffer of descriptor set 0.
struct KernelBinding {
  std::uint32_t binding = 0;
  KernelAccess access = KernelAccess::read;
  std::string name;  ///< from the module's debug information, if it has some
};

/// A specialization constant that the module declares.
struct KernelConstantInfo {
  std::uint32_t id = 0;
  KernelConstant::Kind kind = KernelConstant::Kind::integer;
  std::uint64_t default_bits = 0;
  std::uint64_t bits = 0;  ///< the value in use
  std::string name;        ///< from the module's debug information, if it has some
};

/// Workgroups of one dispatch.
struct Groups {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

/// The shape and type of a value that does not exist yet. A Shape converts to it.
struct ValueSpec {
  ValueSpec(Shape value_shape, DType value_type = DType::f32) noexcept  // NOLINT: implicit by design
      : shape(value_shape), dtype(value_type) {}

  Shape shape;
  DType dtype;
};

/// The bytes of a push-constant block, for Batch::call(). `block` must outlive the call, and have the layout of the
/// shader's block (std430 unless the shader says otherwise).
template <class Block>
Span<const std::byte> push_data(const Block& block) noexcept {
  static_assert(std::is_trivially_copyable_v<Block>, "push constants are plain bytes");
  return {reinterpret_cast<const std::byte*>(&block), sizeof block};
}

/// A compute shader of your own, for Batch::call(). What it needs is read from its SPIR-V, so nothing is declared
/// twice: bindings and how they are accessed, push constants, specialization constants, workgroup size.
///
///     auto blur = brontes::Kernel::from_spirv(device, words).value();
///     auto out  = batch.call(blur, {image}, image.shape(), blur.groups_for(width, height), brontes::push_data(size));
///
/// **What it may be.** SPIR-V 1.0 to 1.5 with one compute entry point to run; storage buffers in descriptor set 0, up
/// to eight; up to 128 bytes of push constants; the capabilities that uses_subgroups() and the Device allow: Shader,
/// subgroup operations that the device has, and Int64 and SignedZeroInfNanPreserve where the Device has enabled them.
/// Anything else is an Error of from_spirv(), before a driver sees it.
///
/// **Access.** `readonly` buffers are inputs and `writeonly` ones outputs. For buffers declared as neither, what the
/// shader does with them counts: only loads, only stores, or both. A buffer that is both read and written takes an
/// input and gives an output of the same size: the kernel starts with a copy of the input in it, so that the input
/// stays what it was for other ops.
///
/// **Pipelines** are created when a batch first runs the kernel, once per module and set of constants, and kept by the
/// Device. Specialization constants become ordinary ones before the driver sees the module, and branches that they
/// rule out are removed.
///
/// A Kernel is a cheap handle. Batches and Programs keep what they need of it, so it may be destroyed at any time.
///
/// Thread-safety: const methods may run concurrently, and one Kernel may be used by batches of different threads.
class BRONTES_API Kernel {
 public:
  /// The words are copied. Errors:
  /// - null_data;
  /// - invalid_argument: no SPIR-V, malformed, no or several compute entry points, nothing written, a constant that
  ///   the module does not have or of another kind;
  /// - unsupported: a capability, extension, version, descriptor set or kind of binding that kernels cannot have;
  /// - limit_exceeded: more bindings, push constants, shared memory or invocations than there may be.
  ///
  /// The module is checked as far as the library reads it. It is not a validator: run spirv-val where modules are made.
  static Result<Kernel> from_spirv(const Device& device, Span<const std::uint32_t> words,
                                   const KernelOptions& options = {});

  Kernel(const Kernel&) noexcept;
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(const Kernel&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  // A Kernel that was moved from has no name, no bindings and so on.

  const std::string& name() const noexcept;
  const std::string& entry_point() const noexcept;
  Span<const KernelBinding> bindings() const noexcept;           ///< ascending
  Span<const KernelConstantInfo> constants() const noexcept;     ///< ascending
  Span<const std::uint32_t> capabilities() const noexcept;       ///< by their SPIR-V numbers
  std::array<std::uint32_t, 3> workgroup_size() const noexcept;  ///< after specialization
  std::uint32_t push_bytes() const noexcept;
  std::uint64_t shared_bytes() const noexcept;  ///< of workgroup memory
  bool uses_subgroups() const noexcept;
  std::size_t num_inputs() const noexcept;   ///< bindings that are read
  std::size_t num_outputs() const noexcept;  ///< bindings that are written

  /// As many workgroups as it takes to have an invocation for each of x * y * z elements.
  Groups groups_for(std::uint64_t x, std::uint64_t y = 1, std::uint64_t z = 1) const noexcept;

 private:
  friend struct KernelAccessor;
  struct BRONTES_LOCAL State;
  explicit Kernel(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace brontes
