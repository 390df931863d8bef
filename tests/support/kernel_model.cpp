#include "support/kernel_model.hpp"

#include "plan/params.hpp"
#include "record/elementwise.hpp"
#include "spirv/specialize.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace brontes::test {
namespace {

using plan::Dispatch;
using plan::Region;

constexpr const char* step_names[] = {"step0", "step1", "step2", "step3", "step4", "step5", "step6", "step7"};
constexpr const char* prologue_names[] = {"prologue0", "prologue1", "prologue2", "prologue3"};
constexpr std::size_t registers = 12;
using Registers = std::array<Symbol, registers>;

template <class Params>
Params params_of(const Dispatch& d) {
  Params params;
  std::memcpy(&params, d.push.data(), sizeof params);
  return params;
}

// Element of an input that element j of the output takes, as program.glsl has it for each mode.
std::uint64_t index_of(std::uint32_t mode, std::uint64_t j, std::uint64_t div, std::uint64_t mod) {
  using plan::ElementwiseMode;
  switch (static_cast<ElementwiseMode>(mode)) {
    case ElementwiseMode::unused: break;
    case ElementwiseMode::full: return j;
    case ElementwiseMode::scalar: return 0;
    case ElementwiseMode::row_vec4: return j / 4 % (mod / 4) * 4 + j % 4;
    case ElementwiseMode::column_vec4: return j / 4 / (div / 4) % mod;
    case ElementwiseMode::general: return j / div % mod;
  }
  return ~std::uint64_t{0};
}

// The same for elementwise_strided, from its constant and the words behind it.
std::uint64_t strided_index_of(std::uint32_t access, std::uint64_t j, std::uint64_t n, const std::uint32_t* view) {
  using plan::StridedMode;
  const std::uint32_t rank = access >> 4 & 15u;
  const std::uint32_t* words = view + (access >> 8);
  auto place = [&](std::uint64_t element) {
    std::uint32_t index = words[0];
    auto rest = static_cast<std::uint32_t>(element);
    for (std::uint32_t d = 0; d + 1 < rank; ++d) {
      index += rest % words[1 + rank + d] * words[1 + d];
      rest /= words[1 + rank + d];
    }
    return std::uint64_t{static_cast<std::uint32_t>(index + rest * words[rank])};
  };
  switch (static_cast<StridedMode>(access & 15u)) {
    case StridedMode::unused: break;
    case StridedMode::full: return j;
    case StridedMode::scalar: return 0;
    case StridedMode::vec4: return place(j / 4 * 4) / 4 * 4 + j % 4;
    case StridedMode::same: return place(j / 4 * 4);
    case StridedMode::row: return (place(j / 4 * 4) + j % 4 * std::uint64_t{words[1]}) & 0xffffffffu;
    case StridedMode::any: return place(std::min(j, n - 1));
  }
  return ~std::uint64_t{0};
}

bool divides_by_zero(std::uint32_t mode, std::uint32_t div, std::uint32_t mod) {
  using plan::ElementwiseMode;
  switch (static_cast<ElementwiseMode>(mode)) {
    case ElementwiseMode::row_vec4: return mod < 4;
    case ElementwiseMode::column_vec4: return div < 4 || mod == 0;
    case ElementwiseMode::general: return div == 0 || mod == 0;
    default: return false;
  }
}

class Model {
 public:
  Model(const Dispatch& dispatch, Memory& memory, const Object& object)
      : d_(dispatch), memory_(memory), object_(object) {}

  void run() {
    const Touched touch = touched(d_);
    if ((touch.read | touch.written) != d_.used) {
      object_("is said to use bindings " + std::to_string(d_.used) + " and uses " +
              std::to_string(touch.read | touch.written));
      return;
    }
    for (std::size_t b = 0; b < d_.binding_count; ++b) {
      const Region& r = d_.bindings[b];
      if ((d_.used >> b & 1u) != 0 && (r.offset % 4 != 0 || r.bytes % r.element_bytes() != 0)) {
        object_("has a binding that is not of whole elements, or begins within a word");
        return;
      }
    }
    if (!knows_its_halves(d_)) return object_("takes f16 for f32, or the other way round");
    elementwise();
  }

  // The epilogue over all elements of a result.
  void epilogue(std::vector<Symbol>& words) {
    kernels::EpilogueParams params;
    std::memcpy(&params, d_.push.data() + kernels::get(d_.kernel).epilogue_offset, sizeof params);
    constexpr const char* inputs[] = {"extra1", "extra2"};
    constexpr const char* modes[] = {"mode1", "mode2"};
    std::array<std::vector<Symbol>, 2> in;
    std::array<std::uint32_t, 2> mode{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      mode[i] = constant(d_, modes[i]);
      if (mode[i] == 0) continue;
      in[i] = read(inputs[i]);
      if (divides_by_zero(mode[i], params.div[i], params.mod[i])) return object_("divides by zero");
    }
    for (std::uint64_t j = 0; j < words.size(); ++j) {
      Registers r{};
      r[0] = words[j];
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (mode[i] != 0) r[i + 1] = element(in[i], index_of(mode[i], j, params.div[i], params.mod[i]));
      }
      steps(r, params.p, params.q);
      words[j] = r[(3 + constant(d_, "step_count")) % registers];
    }
    if (outside_) object_("reads past the end of an operand");
  }

  // The prologue over all elements of an operand. What it reads may hold more than these: a slice of its beginning.
  std::vector<Symbol> prologue(std::uint64_t count_of_operand) {
    kernels::PrologueParams params;
    std::memcpy(&params, d_.push.data() + kernels::get(d_.kernel).prologue_offset, sizeof params);
    std::vector<Symbol> words = read("in0");
    if (words.size() < count_of_operand) object_("reads past the end of an operand");
    words.resize(count_of_operand);
    const std::uint32_t mode = constant(d_, "prologue_mode");
    std::vector<Symbol> other;
    if (mode != 0) other = read("extra0");
    if (divides_by_zero(mode, params.div, params.mod)) {
      object_("divides by zero");
      return words;
    }
    const std::uint32_t count = constant(d_, "prologue_count");
    for (std::uint64_t j = 0; j < words.size(); ++j) {
      Registers r{};
      r[0] = words[j];
      if (mode != 0) r[1] = element(other, index_of(mode, j, params.div, params.mod));
      steps(r, prologue_names, count, params.p, params.q);
      words[j] = r[(3 + count) % registers];
    }
    if (outside_) object_("reads past the end of an operand");
    return words;
  }

 private:
  const Region& region(const char* name) const { return d_.bindings[binding(d_, name)]; }

  static std::uint64_t elements(const Region& r) { return r.bytes / r.element_bytes(); }

  // All that a binding holds, before anything is written.
  std::vector<Symbol> read(const char* name) { return memory_.read(region(name)); }

  Symbol element(const std::vector<Symbol>& words, std::uint64_t i) {
    if (i < words.size()) return words[i];
    outside_ = true;
    return garbage;
  }

  void write(const char* name, const std::vector<Symbol>& words) {
    const Region& r = region(name);
    const std::uint64_t size = r.element_bytes();
    if (r.bytes != words.size() * size) {
      object_("writes " + std::to_string(words.size() * size) + " bytes to a binding of " + std::to_string(r.bytes));
      return;
    }
    if (outside_) object_("reads past the end of an operand");
    memory_.write(r, words);
    if (!writes_whole_vectors(d_)) return;
    for (std::uint64_t i = words.size(); i % 4 != 0; ++i) memory_.set(r, i, garbage);
  }

  void check_grid(std::uint64_t groups, std::uint64_t needed) {
    if (groups < needed) object_("is cut into too few workgroups");
    const auto& g = d_.groups;
    if (std::uint64_t{g[0]} * g[1] * g[2] < groups) object_("has a grid smaller than its workgroups");
  }

  // The steps of a program, on registers whose inputs are set.
  void steps(Registers& r, const float* p, const float* q) { steps(r, step_names, constant(d_, "step_count"), p, q); }
  void steps(Registers& r, const char* const* names, std::uint32_t count, const float* p, const float* q) {
    for (std::uint32_t s = 0; s < count; ++s) {
      const std::uint32_t word = constant(d_, names[s]);
      const auto op = static_cast<record::ElementwiseOp>(word & 255u);
      r[4 + s] = Symbols::elementwise(op, p[s], q[s], r[(word >> 8 & 255u) % registers],
                                      r[(word >> 16 & 255u) % registers], r[(word >> 24) % registers]);
    }
  }

  void elementwise() {
    if (d_.kernel == kernels::Id::transpose) return transpose();
    if (d_.kernel == kernels::Id::store_slice) return store_slice();
    if (d_.kernel == kernels::Id::concat) return concat();
    if (d_.kernel == kernels::Id::elementwise_strided) {
      const auto params = params_of<kernels::ElementwiseStridedParams>(d_);
      run(params, {"access0", "access1", "access2", "access3"},
          [&](std::size_t, std::uint32_t access, std::uint64_t j) {
            return strided_index_of(access, j, params.n, params.view);
          });
      return;
    }
    const auto params = params_of<kernels::ElementwiseParams>(d_);
    const std::array modes{"mode0", "mode1", "mode2", "mode3"};
    for (std::size_t i = 0; i < modes.size(); ++i) {
      if (divides_by_zero(constant(d_, modes[i]), params.div[i], params.mod[i])) return object_("divides by zero");
    }
    run(params, modes, [&](std::size_t i, std::uint32_t mode, std::uint64_t j) {
      return index_of(mode, j, params.div[i], params.mod[i]);
    });
  }

  void transpose() {
    const auto params = params_of<kernels::TransposeParams>(d_);
    const std::uint64_t side = std::uint64_t{constant(d_, "side")} * 4;
    if (constant(d_, "group_size") * 16 != side * side) object_("has a workgroup that is no square");
    const std::vector<Symbol> in = read("in0");
    std::vector<Symbol> out(elements(region("out0")));
    const std::uint64_t matrix = std::uint64_t{params.rows} * params.columns;
    const std::uint64_t squares = ((params.rows + side - 1) / side) * ((params.columns + side - 1) / side);
    check_grid(params.groups, out.size() / matrix * squares);
    for (std::uint64_t at = 0; at < out.size(); ++at) {
      const std::uint64_t j = at / params.rows % params.columns;
      const std::uint64_t from =
          params.offset + at / matrix * params.batch_stride + at % params.rows * params.row_stride + j;
      out[at] = element(in, from & 0xffffffffu);  // a batch stride may be negative
    }
    write("out0", out);
  }

  void store_slice() {
    const auto params = params_of<kernels::StoreSliceParams>(d_);
    const std::uint32_t columns = constant(d_, "columns");
    const std::uint32_t rank = constant(d_, "rank");
    const std::uint64_t group_size = constant(d_, "group_size");
    check_grid(params.groups, (params.n + group_size - 1) / group_size);
    const std::vector<Symbol> in = read("in0");
    if (std::uint64_t{params.n} * columns != in.size()) return object_("does not store all of its operand");
    const Region& r = region("out0");
    for (std::uint32_t unit = 0; unit < params.n; ++unit) {
      std::uint32_t into = params.offset;
      std::uint32_t rest = unit;
      for (std::uint32_t d = 0; d + 1 < rank; ++d) {
        if (params.extents[d] == 0) return object_("divides by zero");
        into += rest % params.extents[d] * params.strides[d];
        rest /= params.extents[d];
      }
      into += rest * params.strides[rank - 1];
      for (std::uint64_t c = 0; c < columns; ++c) {
        const std::uint64_t at = std::uint64_t{into} * columns + c;
        if (at >= elements(r)) return object_("stores outside of its binding");
        memory_.set(r, at, in[std::uint64_t{unit} * columns + c]);
      }
    }
  }

  void concat() {
    const auto params = params_of<kernels::ConcatParams>(d_);
    const std::uint32_t count = constant(d_, "count");
    const std::uint64_t unit = constant(d_, "vectorized") != 0 ? 4 : 1;
    const std::uint64_t group_size = constant(d_, "group_size");
    check_grid(params.groups, (params.n + group_size - 1) / group_size);
    constexpr const char* inputs[] = {"in0", "in1", "in2", "in3", "in4", "in5", "in6"};
    if (count > std::size(inputs)) return object_("has more parts than bindings");
    std::vector<std::vector<Symbol>> in;
    for (std::uint32_t k = 0; k < count; ++k) in.push_back(read(inputs[k]));
    const Region& r = region("out0");
    const std::uint32_t width = params.begin[count];
    for (std::uint32_t i = 0; i < params.n; ++i) {
      if (width == 0) return object_("divides by zero");
      const std::uint32_t outer = i / width;
      const std::uint32_t column = i % width;
      for (std::uint32_t k = 0; k < count; ++k) {
        if (column < params.begin[k] || column >= params.begin[k + 1]) continue;
        const std::uint64_t from =
            std::uint64_t{outer} * (params.begin[k + 1] - params.begin[k]) + column - params.begin[k];
        const std::uint64_t to = std::uint64_t{outer} * params.row + params.column + column;
        for (std::uint64_t c = 0; c < unit; ++c) {
          if (to * unit + c >= elements(r)) return object_("writes outside of its binding");
          memory_.set(r, to * unit + c, element(in[k], from * unit + c));
        }
      }
    }
    if (outside_) object_("reads past the end of an operand");
  }

  // With `place` to tell where input i is read for element j, by the constant that says so.
  template <class Params, class Place>
  void run(const Params& params, const std::array<const char*, 4>& accesses, Place place) {
    const std::uint64_t group_size = constant(d_, "group_size");
    const std::uint64_t lanes = constant(d_, "lanes");
    if (lanes != 0 && group_size % lanes != 0) object_("has a workgroup that ends within a run of lanes");
    const std::uint64_t per_group = group_size * (lanes == 0 ? 1 : params.vectors) * 4;
    if (per_group == 0) return object_("has workgroups without work");
    const std::uint64_t needed = (params.n + per_group - 1) / per_group;
    check_grid(needed, needed);

    constexpr const char* inputs[] = {"in0", "in1", "in2", "in3"};
    constexpr const char* results[] = {"result0", "result1", "result2"};
    constexpr const char* outputs[] = {"out0", "out1", "out2"};
    std::array<std::vector<Symbol>, 4> in;
    std::array<std::uint32_t, 4> access{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      access[i] = constant(d_, accesses[i]);
      if (access[i] != 0) in[i] = read(inputs[i]);
    }
    std::array<std::uint32_t, 3> result{};
    std::array<std::vector<Symbol>, 3> out;
    for (std::size_t o = 0; o < out.size(); ++o) {
      result[o] = static_cast<std::uint32_t>(constant(d_, results[o]) % registers);
      if (result[o] != 0) out[o].resize(params.n);
    }
    for (std::uint64_t j = 0; j < params.n; ++j) {
      Registers r{};
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (access[i] != 0) r[i] = element(in[i], place(i, access[i], j));
      }
      steps(r, params.p, params.q);
      for (std::size_t o = 0; o < out.size(); ++o) {
        if (result[o] != 0) out[o][j] = r[result[o]];
      }
    }
    for (std::size_t o = 0; o < out.size(); ++o) {
      if (result[o] != 0) write(outputs[o], out[o]);
    }
  }

  const Dispatch& d_;
  Memory& memory_;
  const Object& object_;
  bool outside_ = false;
};

}  // namespace

void run_elementwise(const Dispatch& dispatch, Memory& memory, const Object& object) {
  Model(dispatch, memory, object).run();
}

void run_epilogue(const Dispatch& dispatch, Memory& memory, const Object& object, std::vector<Symbol>& words) {
  Model(dispatch, memory, object).epilogue(words);
}

std::vector<Symbol> run_prologue(const Dispatch& dispatch, Memory& memory, const Object& object, std::uint64_t count) {
  return Model(dispatch, memory, object).prologue(count);
}

std::uint32_t constant(const Dispatch& d, const char* name) {
  const auto& constants = kernels::get(d.kernel).constants;
  for (std::size_t i = 0; i < constants.size; ++i) {
    if (std::strcmp(constants[i].name, name) == 0) return d.constants[i];
  }
  std::abort();
}

std::size_t binding(const Dispatch& d, const char* name) {
  const auto& bindings = kernels::get(d.kernel).bindings;
  for (std::size_t i = 0; i < bindings.size; ++i) {
    if (std::strcmp(bindings[i].name, name) == 0) return i;
  }
  std::abort();
}

bool knows_its_halves(const Dispatch& d) {
  const kernels::Kernel& kernel = kernels::get(d.kernel);
  std::uint32_t halves = 0;
  for (std::size_t b = 0; b < d.binding_count; ++b) {
    if ((d.used >> b & 1u) != 0 && d.bindings[b].half) halves |= 1u << kernel.bindings[b].binding;
  }
  return halves == (d.kernel.is_library() ? constant(d, "half_slots") : 0);
}

bool writes_whole_vectors(const Dispatch& d) {
  return d.kernel == kernels::Id::elementwise || d.kernel == kernels::Id::elementwise_strided;
}

bool has_epilogue(const Dispatch& d) {
  return kernels::get(d.kernel).epilogue_offset != kernels::no_constant && constant(d, "step_count") != 0;
}

bool has_prologue(const Dispatch& d) {
  return kernels::get(d.kernel).prologue_offset != kernels::no_constant && constant(d, "prologue_count") != 0;
}

namespace {

// Follows pointers from variables to loads and stores.
Touched scan(const std::vector<std::uint32_t>& module, const kernels::Kernel& kernel) {
  enum Opcode : std::uint32_t {
    variable = 59,
    load = 61,
    store = 62,
    access_chain = 65,
    in_bounds = 66,
    decorate = 71,
    atomic_and = 240,
    atomic_or = 241
  };
  constexpr std::uint32_t binding_decoration = 33;
  std::map<std::uint32_t, std::uint32_t> slots;  // by variable or pointer into it: its binding
  Touched touched;
  auto mark = [&](std::uint8_t& mask, std::uint32_t pointer) {
    const auto slot = slots.find(pointer);
    if (slot == slots.end()) return;
    for (std::size_t b = 0; b < kernel.bindings.size; ++b) {
      if (kernel.bindings[b].binding == slot->second) mask = static_cast<std::uint8_t>(mask | 1u << b);
    }
  };
  for (std::size_t at = 5; at < module.size(); at += module[at] >> 16) {
    const std::uint32_t* operands = &module[at + 1];
    switch (module[at] & 0xffffu) {
      case decorate:
        if (operands[1] == binding_decoration) slots[operands[0]] = operands[2];
        break;
      case access_chain:
      case in_bounds:
        if (const auto base = slots.find(operands[2]); base != slots.end()) slots[operands[1]] = base->second;
        break;
      case load: mark(touched.read, operands[2]); break;
      case store: mark(touched.written, operands[0]); break;
      // One half of a word is written by these two, and the other one stays.
      case atomic_and:
      case atomic_or: mark(touched.written, operands[2]); break;
      default: break;
    }
  }
  return touched;
}

}  // namespace

Touched touched(const Dispatch& d) {
  const kernels::Kernel& kernel = kernels::get(d.kernel);
  if (!d.kernel.is_library()) return scan({kernel.words().begin(), kernel.words().end()}, kernel);
  static std::map<std::pair<std::size_t, std::vector<std::uint32_t>>, Touched> known;
  const std::pair key(d.kernel.index(),
                      std::vector<std::uint32_t>(d.constants.data(), d.constants.data() + d.constant_count));
  const auto [entry, fresh] = known.try_emplace(key);
  if (fresh) {
    entry->second = scan(spirv::specialize(kernel, {d.constants.data(), d.constant_count}), kernel);
  }
  return entry->second;
}

}  // namespace brontes::test
