#include "api/kernel.hpp"

#include "api/access.hpp"
#include "plan/plan.hpp"

#include <algorithm>
#include <limits>

namespace brontes {
namespace {

constexpr const char* call = "Kernel::from_spirv";

std::vector<std::uint32_t> capabilities_of(const vk::Context& context) {
  std::vector<std::uint32_t> all{0, 1};  // Matrix, Shader
  // By Vulkan's bit: basic, vote, arithmetic, ballot, shuffle, relative shuffle, clustered, quad.
  for (std::uint32_t bit = 0; bit < 8; ++bit) {
    if ((context.subgroup_features() >> bit & 1u) != 0) all.push_back(61 + bit);
  }
  if (context.int64()) all.push_back(11);
  if (context.float_controls()) all.push_back(4466);  // SignedZeroInfNanPreserve
  return all;
}

spirv::Limits limits_of(const vk::Context& context) {
  const VkPhysicalDeviceLimits& device = context.physical().limits;
  const SimulatedLimits& simulate = context.options().simulate;
  auto lowered = [](std::uint32_t own, std::uint32_t wish) { return wish == 0 ? own : std::min(own, wish); };
  spirv::Limits limits;
  limits.capabilities = capabilities_of(context);
  limits.extensions = {"SPV_KHR_storage_buffer_storage_class"};
  if (context.float_controls()) limits.extensions.emplace_back("SPV_KHR_float_controls");
  limits.bindings = std::min({static_cast<std::uint32_t>(plan::Dispatch::max_bindings),
                              device.maxPerStageDescriptorStorageBuffers, device.maxDescriptorSetStorageBuffers});
  limits.push_bytes = std::min(static_cast<std::uint32_t>(plan::Dispatch::max_push_bytes), device.maxPushConstantsSize);
  std::copy_n(device.maxComputeWorkGroupSize, 3, limits.local_size.begin());
  limits.invocations = lowered(device.maxComputeWorkGroupInvocations, simulate.max_group_invocations);
  limits.shared_bytes = lowered(device.maxComputeSharedMemorySize, simulate.max_shared_bytes);
  return limits;
}

bool good_name(const std::string& name) {
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                  c == '.' || c == ':';
         });
}

Error prefixed(Error e) {
  e.message = std::string(call) + ": " + e.message;
  return e;
}

const std::string& no_text() noexcept {
  static const std::string none;
  return none;
}

}  // namespace

const char* to_string(KernelAccess access) noexcept {
  switch (access) {
    case KernelAccess::read: return "read";
    case KernelAccess::write: return "write";
    case KernelAccess::read_write: return "read_write";
  }
  return "unknown";
}

Result<Kernel> Kernel::from_spirv(const Device& device, Span<const std::uint32_t> words, const KernelOptions& options) {
  return guarded(call, [&]() -> Result<Kernel> {
    const auto& context = DeviceAccess::context(device);
    if (!context) return prefixed(Error(Errc::invalid_argument, "the Device has been moved from"));
    if (Error e = context->usable()) return e;
    if (words.data() == nullptr && !words.empty()) {
      return prefixed(Error(Errc::null_data, "a null pointer for " + std::to_string(words.size()) + " words"));
    }
    if (!good_name(options.name)) {
      return prefixed(Error(Errc::invalid_argument, "a name has up to 64 letters, digits and any of \"_-.:\""));
    }
    std::vector<spirv::GivenConstant> given;
    for (const KernelConstant& c : options.constants) {
      given.push_back({c.id, c.bits, static_cast<spirv::ConstantKind>(c.kind)});
    }
    auto reflected = spirv::reflect(words, options.entry_point, given);
    if (!reflected) return prefixed(reflected.error());
    for (std::uint32_t number : options.updates) {
      const auto b = std::find_if(reflected->bindings.begin(), reflected->bindings.end(),
                                  [&](const spirv::Binding& known) { return known.number == number; });
      if (b == reflected->bindings.end() || b->access == kernels::Access::read) {
        return prefixed(Error(Errc::invalid_argument, "KernelOptions::updates has binding " + std::to_string(number) +
                                                          ", which the kernel does not write"));
      }
      b->access = kernels::Access::read_write;
    }
    if (Error e = spirv::check(*reflected, limits_of(*context))) return prefixed(std::move(e));
    std::string name = options.name;
    if (name.empty()) name = reflected->entry_point == "main" ? "kernel" : reflected->entry_point;
    if (!good_name(name)) name = "kernel";

    auto state = std::make_shared<State>();
    state->context = context;
    for (const spirv::Binding& b : reflected->bindings) {
      state->bindings.push_back({b.number, static_cast<KernelAccess>(b.access), b.name});
    }
    for (const spirv::Constant& c : reflected->constants) {
      state->constants.push_back({c.id, static_cast<KernelConstant::Kind>(c.kind), c.default_bits, c.bits, c.name});
    }
    auto kernel = std::make_shared<const ops::UserKernel>(std::move(*reflected), std::move(name));
    if (kernel->output_count() == 0) {
      return prefixed(Error(Errc::invalid_argument,
                            "the kernel writes none of its " + std::to_string(kernel->input_count()) + " buffers"));
    }
    state->kernel = std::move(kernel);
    return KernelAccessor::make(std::move(state));
  });
}

static_assert(static_cast<int>(KernelAccess::read) == static_cast<int>(kernels::Access::read) &&
              static_cast<int>(KernelAccess::write) == static_cast<int>(kernels::Access::write) &&
              static_cast<int>(KernelAccess::read_write) == static_cast<int>(kernels::Access::read_write));
static_assert(static_cast<int>(KernelConstant::Kind::boolean) == static_cast<int>(spirv::ConstantKind::boolean) &&
              static_cast<int>(KernelConstant::Kind::integer) == static_cast<int>(spirv::ConstantKind::integer) &&
              static_cast<int>(KernelConstant::Kind::floating) == static_cast<int>(spirv::ConstantKind::floating));

Kernel::Kernel(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
Kernel::Kernel(const Kernel&) noexcept = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(const Kernel&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

const std::string& Kernel::name() const noexcept { return state_ ? state_->kernel->name() : no_text(); }
const std::string& Kernel::entry_point() const noexcept {
  return state_ ? state_->kernel->reflection().entry_point : no_text();
}
Span<const KernelBinding> Kernel::bindings() const noexcept {
  return state_ ? Span<const KernelBinding>(state_->bindings) : Span<const KernelBinding>();
}
Span<const KernelConstantInfo> Kernel::constants() const noexcept {
  return state_ ? Span<const KernelConstantInfo>(state_->constants) : Span<const KernelConstantInfo>();
}
Span<const std::uint32_t> Kernel::capabilities() const noexcept {
  if (!state_) return {};
  return state_->kernel->reflection().capabilities;
}
std::array<std::uint32_t, 3> Kernel::workgroup_size() const noexcept {
  return state_ ? state_->kernel->reflection().local_size : std::array<std::uint32_t, 3>{};
}
std::uint32_t Kernel::push_bytes() const noexcept { return state_ ? state_->kernel->reflection().push_bytes : 0; }
std::uint64_t Kernel::shared_bytes() const noexcept { return state_ ? state_->kernel->reflection().shared_bytes : 0; }
bool Kernel::uses_subgroups() const noexcept { return state_ && state_->kernel->reflection().subgroups; }
std::size_t Kernel::num_inputs() const noexcept { return state_ ? state_->kernel->input_count() : 0; }
std::size_t Kernel::num_outputs() const noexcept { return state_ ? state_->kernel->output_count() : 0; }

Groups Kernel::groups_for(std::uint64_t x, std::uint64_t y, std::uint64_t z) const noexcept {
  if (!state_) return {};
  const auto& size = state_->kernel->reflection().local_size;
  // What does not fit is more than any device takes; call() says so.
  auto groups = [](std::uint64_t count, std::uint32_t per_group) {
    const std::uint64_t whole = count / per_group + (count % per_group != 0 ? 1 : 0);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, std::numeric_limits<std::uint32_t>::max()));
  };
  return {groups(x, size[0]), groups(y, size[1]), groups(z, size[2])};
}

}  // namespace brontes
