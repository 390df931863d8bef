#include "support/kernel_model.hpp"

#include "plan/params.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace brontes::test {
namespace {

using plan::Dispatch;
using plan::Region;

constexpr const char* step_names[] = {"step0", "step1", "step2", "step3", "step4", "step5", "step6", "step7"};
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
  Model(const Dispatch& dispatch, Memory& memory, Symbols& symbols, const Object& object)
      : d_(dispatch), memory_(memory), symbols_(symbols), object_(object) {}

  void run() {
    const Touched touch = touched(d_);
    if ((touch.read | touch.written) != d_.used) {
      object_("is said to use bindings " + std::to_string(d_.used) + " and uses " +
              std::to_string(touch.read | touch.written));
      return;
    }
    for (std::size_t b = 0; b < d_.binding_count; ++b) {
      if ((d_.used >> b & 1u) != 0 && (d_.bindings[b].offset % 4 != 0 || d_.bindings[b].bytes % 4 != 0)) {
        object_("has a binding that is not of whole words");
        return;
      }
    }
    switch (d_.kernel) {
      case kernels::Id::elementwise: return elementwise();
      case kernels::Id::reduce: return reduce();
      case kernels::Id::matmul_combine: return combine();
      case kernels::Id::matmul_gemv:
      case kernels::Id::matmul_gemv_subgroup:
      case kernels::Id::matmul_naive:
      case kernels::Id::matmul_panel:
      case kernels::Id::matmul_subgroup_kn:
      case kernels::Id::matmul_subgroup_nk:
      case kernels::Id::matmul_tiled: return matmul();
      case kernels::Id::matmul_pack: return pack();
    }
  }

 private:
  const Region& region(const char* name) const { return d_.bindings[binding(d_, name)]; }

  // All that a binding holds, before anything is written.
  std::vector<Symbol> read(const char* name) {
    const Region& r = region(name);
    const Symbol* words = memory_.at(r);
    return {words, words + r.bytes / 4};
  }

  Symbol element(const std::vector<Symbol>& words, std::uint64_t i) {
    if (i < words.size()) return words[i];
    outside_ = true;
    return garbage;
  }

  void write(const char* name, const std::vector<Symbol>& words) {
    const Region& r = region(name);
    if (r.bytes != words.size() * 4) {
      object_("writes " + std::to_string(words.size() * 4) + " bytes to a binding of " + std::to_string(r.bytes));
      return;
    }
    if (outside_) object_("reads past the end of an operand");
    std::copy(words.begin(), words.end(), memory_.at(r));
  }

  void check_grid(std::uint64_t groups, std::uint64_t needed) {
    if (groups < needed) object_("is cut into too few workgroups");
    const auto& g = d_.groups;
    if (std::uint64_t{g[0]} * g[1] * g[2] < groups) object_("has a grid smaller than its workgroups");
  }

  // The steps of a program, on registers whose inputs are set.
  void steps(Registers& r, const float* p, const float* q) {
    const std::uint32_t count = constant(d_, "step_count");
    for (std::uint32_t s = 0; s < count; ++s) {
      const std::uint32_t word = constant(d_, step_names[s]);
      const auto op = static_cast<record::ElementwiseOp>(word & 255u);
      r[4 + s] =
          Symbols::elementwise(op, p[s], q[s], r[(word >> 8 & 255u) % registers], r[(word >> 16 & 255u) % registers]);
    }
  }

  void elementwise() {
    const auto params = params_of<plan::ElementwiseParams>(d_);
    const std::uint64_t per_group = std::uint64_t{constant(d_, "group_size")} * constant(d_, "vectors") * 4;
    check_grid(params.groups, (params.n + per_group - 1) / per_group);

    constexpr const char* inputs[] = {"in0", "in1", "in2", "in3"};
    constexpr const char* modes[] = {"mode0", "mode1", "mode2", "mode3"};
    constexpr const char* results[] = {"result0", "result1", "result2"};
    constexpr const char* outputs[] = {"out0", "out1", "out2"};
    std::array<std::vector<Symbol>, 4> in;
    std::array<std::uint32_t, 4> mode{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      mode[i] = constant(d_, modes[i]);
      if (mode[i] == 0) continue;
      in[i] = read(inputs[i]);
      if (divides_by_zero(mode[i], params.div[i], params.mod[i])) return object_("divides by zero");
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
        if (mode[i] != 0) r[i] = element(in[i], index_of(mode[i], j, params.div[i], params.mod[i]));
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

  // The epilogue of a matmul or a reduction over all elements of its result.
  void epilogue(const plan::EpilogueParams& params, std::vector<Symbol>& words) {
    const std::uint32_t count = constant(d_, "step_count");
    if (count == 0) return;
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
      words[j] = r[(3 + count) % registers];
    }
  }

  void reduce() {
    const auto params = params_of<plan::ReduceParams>(d_);
    if (params.chunk == 0) return object_("has chunks of nothing");
    check_grid(params.groups, (params.n + params.chunk - 1) / params.chunk);
    const bool pair = constant(d_, "pair") != 0;
    const auto combine = static_cast<Symbols::Combine>(constant(d_, "combine"));
    const std::vector<Symbol> x = params.n != 0 ? read("in0") : std::vector<Symbol>();
    const std::vector<Symbol> y = params.n != 0 && pair ? read("in1") : std::vector<Symbol>();
    std::vector<Symbol> out(params.groups);
    for (std::uint64_t g = 0; g < out.size(); ++g) {
      Symbols::Reduction reduction(symbols_, combine);
      for (std::uint64_t i = g * params.chunk; i < params.n && i < (g + 1) * params.chunk; ++i) {
        if (pair) {
          reduction.add_product(element(x, i), element(y, i));
        } else {
          reduction.add(element(x, i));
        }
      }
      out[g] = reduction.result();
    }
    if (constant(d_, "step_count") != 0 && out.size() != 1) object_("runs an epilogue on partial results");
    epilogue(params.epilogue, out);
    write("out0", out);
  }

  void matmul() {
    const auto params = params_of<plan::MatmulParams>(d_);
    const bool panel = d_.kernel == kernels::Id::matmul_panel;
    const bool nk = panel || d_.kernel == kernels::Id::matmul_subgroup_nk ||
                    (d_.kernel != kernels::Id::matmul_subgroup_kn && constant(d_, "b_layout") != 0);
    const std::uint32_t a_height = panel && constant(d_, "a_packed") != 0 ? constant(d_, "rows") : 0;
    const std::uint32_t b_height = panel && constant(d_, "b_packed") != 0 ? constant(d_, "width") : 0;
    if (panel) {
      const bool whole = params.k % 4 == 0 || (a_height != 0 && b_height != 0);
      if ((constant(d_, "vectorized") != 0) != whole) object_("is wrong about alignment");
      const std::uint64_t fours = whole ? plan::matmul_fours(params.k) : params.k / 4;
      if (fours % constant(d_, "steps") != 0) object_("steps over the end of k");
    }
    auto a_at = [&](std::uint64_t i, std::uint64_t k) {
      return a_height != 0 ? packed_at(i, k, params.k, a_height) : i * params.k + k;
    };
    auto b_at = [&](std::uint64_t k, std::uint64_t j) {
      if (b_height != 0) return packed_at(j, k, params.k, b_height);
      return nk ? j * params.k + k : k * params.n + j;
    };
    check_grid(params.groups, 1);
    if (params.n_begin != 0 || params.n_count != params.n) object_("computes a part of a whole weight");
    const std::vector<Symbol> a = read("a");
    const std::vector<Symbol> b = read("b");
    const bool accumulate = constant(d_, "accumulate") != 0;
    if (params.k_slice == 0) return object_("has slices of nothing");
    const std::uint64_t slices = (std::uint64_t{params.k_count} + params.k_slice - 1) / params.k_slice;
    std::vector<Symbol> c(slices * params.m * params.n, garbage);
    const std::vector<Symbol> before = accumulate ? read("c") : c;
    const std::uint64_t end = std::uint64_t{params.k_begin} + params.k_count;
    if (params.k_begin % 4 != 0 || end > params.k) object_("takes a part of k that is not there");
    if (slices > 1 && params.k_slice % 32 != 0) object_("cuts k within a block");
    for (std::uint64_t at = 0; at < c.size(); ++at) {
      const std::uint64_t i = at / params.n % params.m;
      const std::uint64_t j = at % params.n;
      const std::uint64_t first = params.k_begin + at / params.n / params.m * params.k_slice;
      Symbols::Product product(first);
      for (std::uint64_t k = first; k < std::min(first + params.k_slice, end); ++k) {
        product.add(element(a, a_at(i, k)), element(b, b_at(k, j)));
      }
      if (accumulate) product.accumulate(symbols_, params.alpha, element(before, at));
      c[at] = end == params.k && slices == 1 && params.k_begin == 0 ? product.result(params.alpha)
                                                                    : product.partial(symbols_, params.alpha);
    }
    if (constant(d_, "step_count") != 0 && (end != params.k || slices > 1)) {
      object_("runs an epilogue on a part of k");
    }
    epilogue(params.epilogue, c);
    write("c", c);
  }

  // Where element k of row i lies after pack.
  static std::uint64_t packed_at(std::uint64_t i, std::uint64_t k, std::uint64_t all_k, std::uint64_t height) {
    return ((i / height * plan::matmul_fours(all_k) + k / 4) * height + i % height) * 4 + k % 4;
  }

  void pack() {
    const auto params = params_of<plan::MatmulPackParams>(d_);
    const bool nk = constant(d_, "b_layout") != 0;
    const std::uint32_t height = constant(d_, "height");
    const std::uint64_t per_group = constant(d_, "group_size");
    const auto layout = nk ? plan::MatmulLayout::nk : plan::MatmulLayout::kn;
    check_grid((plan::matmul_pack_invocations(layout, params.n_count, params.k, height) + per_group - 1) / per_group,
               1);
    if (constant(d_, "vectorized") != plan::matmul_vectorized(params.k, params.n_count))
      object_("is wrong about alignment");
    const std::vector<Symbol> b = read("b");
    const Symbol zero = Symbols::elementwise(record::ElementwiseOp::fill, 0, 0, garbage, garbage);
    std::vector<Symbol> c(plan::matmul_packed_elements(params.n_count, params.k, height), zero);
    for (std::uint64_t i = 0; i < params.n_count; ++i) {
      for (std::uint64_t k = 0; k < params.k; ++k) {
        c[packed_at(i, k, params.k, height)] = element(b, nk ? i * params.k + k : k * params.n_count + i);
      }
    }
    write("c", c);
  }

  void combine() {
    const auto params = params_of<plan::MatmulCombineParams>(d_);
    const bool accumulate = constant(d_, "accumulate") != 0;
    const bool four = constant(d_, "vectorized") != 0;
    const std::uint64_t size = std::uint64_t{params.m} * params.n;
    if (params.n_begin != 0 || params.n_count != params.n) return object_("computes a part of a whole weight");
    if (four && params.n % 4 != 0) object_("takes a row for whole vec4s that is not");
    const std::uint64_t per_group = std::uint64_t{constant(d_, "group_size")} * (four ? 4 : 1);
    check_grid(params.groups, (size + per_group - 1) / per_group);
    const std::vector<Symbol> partials = read("partials");
    std::vector<Symbol> c(size, garbage);
    const std::vector<Symbol> before = accumulate ? read("c") : c;
    for (std::uint64_t at = 0; at < size; ++at) {
      Symbols::Product product;
      for (std::uint64_t s = 0; s < params.slices; ++s) product.join(symbols_, element(partials, s * size + at));
      if (accumulate) product.accumulate(symbols_, params.alpha, element(before, at));
      c[at] = product.partial(symbols_, params.alpha);
    }
    epilogue(params.epilogue, c);
    write("c", c);
  }

  const Dispatch& d_;
  Memory& memory_;
  Symbols& symbols_;
  const Object& object_;
  bool outside_ = false;
};

}  // namespace

void run_kernel(const Dispatch& dispatch, Memory& memory, Symbols& symbols, const Object& object) {
  Model(dispatch, memory, symbols, object).run();
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

Touched touched(const Dispatch& d) {
  Touched t;
  auto reads = [&](const char* name) { t.read = static_cast<std::uint8_t>(t.read | 1u << binding(d, name)); };
  auto writes = [&](const char* name) { t.written = static_cast<std::uint8_t>(t.written | 1u << binding(d, name)); };
  auto has_epilogue = [&] {
    if (constant(d, "step_count") == 0) return;
    if (constant(d, "mode1") != 0) reads("extra1");
    if (constant(d, "mode2") != 0) reads("extra2");
  };
  switch (d.kernel) {
    case kernels::Id::elementwise:
      if (constant(d, "mode0") != 0) reads("in0");
      if (constant(d, "mode1") != 0) reads("in1");
      if (constant(d, "mode2") != 0) reads("in2");
      if (constant(d, "mode3") != 0) reads("in3");
      if (constant(d, "result0") != 0) writes("out0");
      if (constant(d, "result1") != 0) writes("out1");
      if (constant(d, "result2") != 0) writes("out2");
      break;
    case kernels::Id::reduce:
      if (params_of<plan::ReduceParams>(d).n != 0) {
        reads("in0");
        if (constant(d, "pair") != 0) reads("in1");
      }
      writes("out0");
      has_epilogue();
      break;
    case kernels::Id::matmul_combine:
      reads("partials");
      if (constant(d, "accumulate") != 0) reads("c");
      writes("c");
      has_epilogue();
      break;
    case kernels::Id::matmul_gemv:
    case kernels::Id::matmul_gemv_subgroup:
    case kernels::Id::matmul_naive:
    case kernels::Id::matmul_panel:
    case kernels::Id::matmul_subgroup_kn:
    case kernels::Id::matmul_subgroup_nk:
    case kernels::Id::matmul_tiled:
      reads("a");
      reads("b");
      if (constant(d, "accumulate") != 0) reads("c");
      writes("c");
      has_epilogue();
      break;
    case kernels::Id::matmul_pack:
      reads("b");
      writes("c");
      break;
  }
  return t;
}

}  // namespace brontes::test
