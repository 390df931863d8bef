#include "ops/call.hpp"

#include "plan/plan.hpp"
#include "spirv/prune.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

namespace brontes::ops {
namespace {

using kernels::Access;
using record::Field;
using record::ValueId;

std::uint64_t hash_of(Span<const std::uint32_t> words, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (std::uint32_t word : words) hash = (hash ^ word) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

// What one call has besides its operands; the graph keeps it.
struct Call {
  std::shared_ptr<const UserKernel> kernel;
  std::array<std::byte, plan::Dispatch::max_push_bytes> push{};
};

struct Attributes {
  const char* name;
  const Call* call;
  std::uint64_t content;  // of kernel and push constants, for fingerprints
  std::array<std::uint32_t, 3> groups;
};

constexpr Field fields[] = {
    {"kernel", Field::Type::text, Field::Text::word, offsetof(Attributes, name)},
    {"x", Field::Type::u32, Field::Text::extent, offsetof(Attributes, groups)},
    {"y", Field::Type::u32, Field::Text::extent, offsetof(Attributes, groups) + 4},
    {"z", Field::Type::u32, Field::Text::extent, offsetof(Attributes, groups) + 8},
    {"content", Field::Type::u64, Field::Text::hidden, offsetof(Attributes, content)},
};

Error lower(plan::Lowering& to, std::uint32_t index) {
  const record::Node& node = to.root(index);
  const auto attributes = node.attributes.as<Attributes>();
  const UserKernel& user = *attributes.call->kernel;
  plan::Dispatch dispatch(kernels::Ref(user.kernel()), index);
  dispatch.work = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    dispatch.work *= std::uint64_t{attributes.groups[i]} * user.reflection().local_size[i];
  }
  std::memcpy(dispatch.push.data(), attributes.call->push.data(), dispatch.push_bytes);
  std::size_t input = 0;
  ValueId output = node.output;
  for (std::size_t b = 0; b < dispatch.binding_count; ++b) {
    const Access access = user.kernel().bindings[b].access;
    const plan::Region from = access == Access::write ? plan::Region() : to.region(to.graph.inputs(node)[input++]);
    if (access == Access::read) {
      dispatch.bind_at(b, from);
      continue;
    }
    const plan::Region& into = to.region(output);
    // What it updates in place is a copy: others may need the operand.
    if (access == Access::read_write) {
      if (Error e = plan::lower_copy(to, index, from, into, to.graph.value(output).shape.count())) return e;
    }
    dispatch.bind_at(b, into);
    ++output;
  }
  to.emit_grid(dispatch, attributes.groups);
  return {};
}

const record::Op call_op{.name = "call", .fields = fields, .lower = lower, .types = ~0u, .no_halves = true};

std::string quoted(const spirv::Binding& binding) {
  return "binding " + std::to_string(binding.number) + (binding.name.empty() ? "" : " ('" + binding.name + "')");
}

std::string bindings_of(const UserKernel& kernel, bool inputs) {
  std::string text;
  for (const spirv::Binding& b : kernel.reflection().bindings) {
    if (b.access == (inputs ? Access::write : Access::read)) continue;
    text += (text.empty() ? "" : ", ") + quoted(b);
  }
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

UserKernel::UserKernel(spirv::Reflection reflection, std::string name)
    : name_(std::move(name)), reflection_(std::move(reflection)) {
  reflection_.module = spirv::prune(std::move(reflection_.module));
  for (const spirv::Binding& b : reflection_.bindings) {
    bindings_.push_back({b.number, b.access, b.name.c_str()});
    if (b.access != Access::write) ++input_count_;
    if (b.access != Access::read) ++output_count_;
  }
  kernel_.name = name_.c_str();
  kernel_.modules[0] = {reflection_.module.data(), reflection_.module.size()};
  kernel_.bindings = {bindings_.data(), bindings_.size()};
  kernel_.push_bytes = reflection_.push_bytes;
  kernel_.epilogue_offset = kernels::no_constant;
  kernel_.prologue_offset = kernels::no_constant;
  kernel_.subgroups = reflection_.subgroups;
  kernel_.entry_point = reflection_.entry_point.c_str();
  kernel_.hash = hash_of(reflection_.module);
}

Result<ValueId> call(record::Graph& graph, std::shared_ptr<const UserKernel> kernel, Span<const ValueId> inputs,
                     Span<const record::ValueType> outputs, const CallOptions& options) {
  const std::string who = "call " + kernel->name() + ": ";
  auto mismatch = [&](const std::string& what) { return Error(Errc::shape_mismatch, who + what); };
  auto count = [](std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); };
  if (inputs.size() != kernel->input_count()) {
    return Error(Errc::invalid_argument, who + count(inputs.size(), "input") + " for a kernel that reads " +
                                             count(kernel->input_count(), "buffer") + bindings_of(*kernel, true));
  }
  if (outputs.size() != kernel->output_count()) {
    return Error(Errc::invalid_argument, who + count(outputs.size(), "output") + " for a kernel that writes " +
                                             count(kernel->output_count(), "buffer") + bindings_of(*kernel, false));
  }
  std::size_t input = 0;
  std::size_t output = 0;
  for (const spirv::Binding& b : kernel->reflection().bindings) {
    const bool reads = b.access != Access::write;
    const bool writes = b.access != Access::read;
    if (reads && graph.value(inputs[input]).shape.count() == 0) {
      return Error(Errc::empty_input, who + "the operand of " + quoted(b) + " has no elements");
    }
    if (writes && outputs[output].shape.count() == 0) {
      return Error(Errc::empty_input, who + "the result of " + quoted(b) + " has no elements");
    }
    if (writes && outputs[output].dtype != DType::f32 && outputs[output].dtype != DType::i32) {
      return Error(Errc::unsupported, who + "the result of " + quoted(b) + " is to be " +
                                          to_string(outputs[output].dtype) + "; a kernel gives f32 or i32");
    }
    if (reads && writes && graph.value(inputs[input]).shape.count() != outputs[output].shape.count()) {
      return mismatch(quoted(b) + " is read and written, so its operand " +
                      to_string(graph.value(inputs[input]).shape) + " and its result " +
                      to_string(outputs[output].shape) + " must have the same size");
    }
    input += reads ? 1 : 0;
    output += writes ? 1 : 0;
  }
  // A C++ struct may end in padding that the shader's block does not have.
  const std::uint32_t push = kernel->reflection().push_bytes;
  if (options.push.size() < push || options.push.size() > (push + std::size_t{15}) / 16 * 16) {
    return mismatch(std::to_string(options.push.size()) + " bytes of push constants for a kernel that has " +
                    std::to_string(push));
  }
  if (options.push.data() == nullptr && push != 0) return Error(Errc::null_data, who + "push constants are null");
  for (std::size_t i = 0; i < 3; ++i) {
    std::string message = who;
    if (options.groups[i] == 0) {
      message.append("no workgroups along ").push_back("xyz"[i]);
      return Error(Errc::invalid_argument, std::move(message));
    }
    if (options.groups[i] > options.max_groups[i]) {
      message.append(std::to_string(options.groups[i])).append(" workgroups along ").push_back("xyz"[i]);
      message.append(", and this device takes at most ").append(std::to_string(options.max_groups[i]));
      message.append(" (maxComputeWorkGroupCount)");
      return Error(Errc::limit_exceeded, std::move(message));
    }
  }

  auto data = std::make_shared<Call>();
  data->kernel = std::move(kernel);
  if (push != 0) std::memcpy(data->push.data(), options.push.data(), push);
  std::array<std::uint32_t, plan::Dispatch::max_push_bytes / 4> words;
  std::memcpy(words.data(), data->push.data(), sizeof words);
  const Attributes attributes{data->kernel->name().c_str(), data.get(), hash_of(words, data->kernel->kernel().hash),
                              options.groups};
  return graph.with_operands(call_op, inputs, [&](Span<const ValueId> operands) {
    return graph.append(call_op, operands, attributes, outputs, std::move(data));
  });
}

}  // namespace brontes::ops
