#include "cases.hpp"

#include "op_case.hpp"
#include "ops/catalogue.hpp"
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "record/graph.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>

namespace kernel_report {
namespace {

using brontes::DType;
using brontes::Errc;
using brontes::Error;
using brontes::Layout;
using brontes::MatmulKernel;
using brontes::Result;
using brontes::Shape;
using brontes::ops::ReduceOp;
using brontes::record::ElementwiseOp;
using brontes::record::ValueId;

constexpr std::uint64_t large = std::uint64_t{1} << 20;

// Records on resident buffers. The first error stays.
class Recording {
 public:
  explicit Recording(const brontes::plan::Traits& traits) : graph_(traits.max_storage_range) {}

  ValueId input(const Shape& shape, DType type = DType::f32) { return graph_.import(shape, resources_++, type); }
  ValueId op(ElementwiseOp op, std::initializer_list<ValueId> inputs, float p = 0.5f, float q = 2.0f) {
    return this->op(op, brontes::Span<const ValueId>(inputs.begin(), inputs.size()), p, q);
  }
  ValueId op(ElementwiseOp op, brontes::Span<const ValueId> inputs, float p = 0.5f, float q = 2.0f) {
    return take(brontes::record::elementwise(graph_, op, inputs, p, q));
  }
  ValueId fill_i32(const Shape& shape) { return take(brontes::record::fill_i32(graph_, 5, shape)); }
  ValueId fill(const Shape& shape) { return take(brontes::record::fill(graph_, 0.5f, shape)); }
  ValueId reduce(ReduceOp op, std::initializer_list<ValueId> inputs) {
    return take(brontes::ops::reduce(graph_, op, {inputs.begin(), inputs.size()}));
  }
  ValueId matmul(std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout, MatmulKernel kernel,
                 DType type = DType::f32, std::uint32_t variant = 0) {
    brontes::MatmulOptions options;
    options.layout = layout;
    options.kernel = kernel;
    options.variant = variant;
    if (kernel == MatmulKernel::coopmat) options.precision = brontes::Precision::f16;
    const ValueId a = input({m, k});
    const ValueId b = type != DType::f32     ? graph_.import_weight({n, k}, type, resources_++, n)
                      : layout == Layout::nk ? input({n, k})
                                             : input({k, n});
    return take(brontes::plan::matmul(graph_, a, b, options));
  }
  void keep(ValueId x) { graph_.keep(x); }

  const brontes::record::Graph& graph() const { return graph_; }
  const Error& error() const { return error_; }

 private:
  ValueId take(Result<ValueId> result) {
    if (result) return *result;
    if (!error_) error_ = result.error();
    return 0;
  }

  brontes::record::Graph graph_;
  brontes::record::ResourceId resources_ = 0;
  Error error_;
};

class Cases {
 public:
  explicit Cases(const brontes::plan::Traits& traits) : traits_(traits) {}

  using Record = std::function<void(Recording&)>;

  /// Adds what the recording is planned as. It must be `dispatches` dispatches.
  void add(const std::string& name, std::size_t dispatches, const Record& record) {
    if (error_) return;
    Recording recording(traits_);
    record(recording);
    error_ = recording.error();
    if (error_) return;
    auto plan = brontes::plan::make_plan(recording.graph(), traits_);
    if (!plan) {
      error_ = plan.error();
      return;
    }
    if (plan->dispatches.size() != dispatches) {
      error_ = Error(Errc::invalid_argument, name + " is planned as " + std::to_string(plan->dispatches.size()) +
                                                 " dispatches, not " + std::to_string(dispatches));
      return;
    }
    for (const brontes::plan::Dispatch& d : plan->dispatches) add(name, d);
  }

  /// Adds what a case of the catalogue is planned as, on resident operands.
  void add(const brontes::cases::OpCase& c) {
    if (error_) return;
    brontes::Batch batch = brontes::OpAccess::detached();
    std::vector<brontes::Tensor> operands;
    for (const brontes::cases::Operand& o : c.operands) {
      const auto resource = static_cast<brontes::record::ResourceId>(operands.size());
      const ValueId x = brontes::OpAccess::graph(batch)->import(o.shape, resource, o.type);
      operands.push_back(brontes::OpAccess::tensor(batch, x));
    }
    c.record(batch, operands);
    error_ = batch.error();
    if (error_) return;
    auto plan = brontes::plan::make_plan(*brontes::OpAccess::graph(batch), traits_);
    if (!plan) {
      error_ = plan.error();
      return;
    }
    for (const brontes::plan::Dispatch& d : plan->dispatches) add(catalogue_prefix + c.name, d);
  }

  Result<std::vector<Case>> take() {
    if (error_) return error_;
    return std::move(cases_);
  }

 private:
  void add(const std::string& name, const brontes::plan::Dispatch& d) {
    Case c{name, d.kernel, {d.constants.begin(), d.constants.begin() + d.constant_count}};
    for (const Case& known : cases_) {
      if (known.kernel == c.kernel && known.constants == c.constants) return;
    }
    if (d.kernel == brontes::kernels::Id::matmul_tiled) {
      namespace kernel = brontes::kernels::matmul_tiled;
      c.name += "/" + std::to_string(d.get(kernel::tile_m)) + "x" + std::to_string(d.get(kernel::tile_n));
    }
    if (d.kernel == brontes::kernels::Id::matmul_coopmat) {
      namespace kernel = brontes::kernels::matmul_coopmat;
      auto tile = [&](kernel::Constant matrix, kernel::Constant matrices, kernel::Constant subgroups) {
        return std::to_string(d.get(matrix) * d.get(matrices) * d.get(subgroups));
      };
      c.name += "/" + tile(kernel::matrix_m, kernel::matrices_m, kernel::subgroups_m) + "x" +
                tile(kernel::matrix_n, kernel::matrices_n, kernel::subgroups_n);
    }
    if (d.kernel == brontes::kernels::Id::matmul_combine) c.name += "/combine";
    const auto same_name = [&](const Case& known) { return known.name == c.name; };
    for (int pass = 2; std::any_of(cases_.begin(), cases_.end(), same_name); ++pass) {
      c.name = name + "/pass-" + std::to_string(pass);
    }
    cases_.push_back(std::move(c));
  }

  const brontes::plan::Traits& traits_;
  std::vector<Case> cases_;
  Error error_;
};

void add_single_ops(Cases& cases) {
  struct Op {
    const char* name;
    ElementwiseOp op;
    std::size_t arity;
    const char* types;
  };
  constexpr Op ops[] = {
#define BRONTES_OP(name, code, arity, scalars, types, formula) {#name, static_cast<ElementwiseOp>(code), arity, #types},
#include "elementwise.def"
#undef BRONTES_OP
  };
  for (const Op& op : ops) {
    cases.add(std::string("elementwise/") + op.name, 1, [&](Recording& r) {
      if (op.arity == 0) {
        op.op == ElementwiseOp::fill ? r.fill({large}) : r.fill_i32({large});
        return;
      }
      std::vector<ValueId> inputs;
      for (std::size_t k = 0; k < op.arity; ++k) {
        const char letter = op.types[k];
        const DType type = letter == 'i'   ? DType::i32
                           : letter == 'm' ? DType::mask
                           : letter == 'h' ? DType::f16
                                           : DType::f32;
        inputs.push_back(r.input({large}, type));
      }
      r.op(op.op, inputs);
    });
  }
}

void relu_scale_add(Recording& r, const Shape& x, const Shape& y) {
  const ValueId positive = r.op(ElementwiseOp::relu, {r.input(x)});
  r.op(ElementwiseOp::add, {r.op(ElementwiseOp::scale, {positive}), r.input(y)});
}

void add_fused(Cases& cases) {
  const std::string name = fused_case;
  cases.add(name, 1, [](Recording& r) { relu_scale_add(r, {large}, {large}); });
  cases.add(name + "/row", 1, [](Recording& r) { relu_scale_add(r, {1024, 1024}, {1024}); });
  cases.add(name + "/column", 1, [](Recording& r) { relu_scale_add(r, {1024, 1024}, {1024, 1}); });
  cases.add(name + "/general", 1, [](Recording& r) { relu_scale_add(r, {1025, 1023}, {1023}); });
  cases.add(name + "/scalar", 1, [](Recording& r) { relu_scale_add(r, {large}, {1}); });

  // Eight steps, four inputs, three results.
  cases.add("fused/8-simple", 1, [](Recording& r) {
    const ValueId a = r.op(ElementwiseOp::relu, {r.input({large})});
    const ValueId b = r.op(ElementwiseOp::add, {r.op(ElementwiseOp::scale, {a}), r.input({large})});
    const ValueId c = r.op(ElementwiseOp::mul, {r.op(ElementwiseOp::neg, {b}), r.input({large})});
    r.keep(b);
    r.keep(c);
    const ValueId d = r.op(ElementwiseOp::sub, {r.op(ElementwiseOp::offset, {c}), r.input({large})});
    r.op(ElementwiseOp::clamp, {d});
  });
  cases.add("fused/8-activations", 1, [](Recording& r) {
    const ValueId a = r.op(ElementwiseOp::gelu, {r.input({large})});
    const ValueId b = r.op(ElementwiseOp::mul, {r.op(ElementwiseOp::tanh, {a}), r.input({large})});
    const ValueId c = r.op(ElementwiseOp::div, {r.op(ElementwiseOp::exp, {b}), r.input({large})});
    r.keep(b);
    r.keep(c);
    const ValueId d = r.op(ElementwiseOp::max, {r.op(ElementwiseOp::log, {c}), r.input({large})});
    r.op(ElementwiseOp::gelu_tanh, {d});
  });
}

void add_reductions(Cases& cases) {
  cases.add("reduce/sum", 2, [](Recording& r) { r.reduce(ReduceOp::sum, {r.input({large})}); });
  cases.add("reduce/max", 2, [](Recording& r) { r.reduce(ReduceOp::max, {r.input({large})}); });
  cases.add("reduce/min", 2, [](Recording& r) { r.reduce(ReduceOp::min, {r.input({large})}); });
  cases.add("reduce/dot", 2, [](Recording& r) { r.reduce(ReduceOp::dot, {r.input({large}), r.input({large})}); });
  cases.add("reduce/sum-scale-gelu", 2, [](Recording& r) {
    r.op(ElementwiseOp::gelu, {r.op(ElementwiseOp::scale, {r.reduce(ReduceOp::sum, {r.input({large})})})});
  });
}

struct Product {
  MatmulKernel kernel;
  std::uint64_t m, k, n;
  std::uint32_t variant = 0;
};

void add_matmul(Cases& cases, const Product& p, const std::string& suffix,
                std::initializer_list<bool> epilogues = {false, true}, std::size_t dispatches = 1) {
  for (const Layout layout : {Layout::nk, Layout::kn}) {
    for (const bool epilogue : epilogues) {
      const std::string name = std::string("matmul/") + to_string(p.kernel) + "/" + to_string(layout) +
                               (epilogue ? "/bias-gelu" : "") + suffix;
      cases.add(name, dispatches, [&](Recording& r) {
        const ValueId product = r.matmul(p.m, p.k, p.n, layout, p.kernel, DType::f32, p.variant);
        if (epilogue) r.op(ElementwiseOp::gelu, {r.op(ElementwiseOp::add, {product, r.input({p.n})})});
      });
    }
  }
}

void add_weights(Cases& cases, const Product& p, const std::string& suffix) {
  for (const DType type : {DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
    const std::string name = std::string("matmul/") + to_string(p.kernel) + "/" + to_string(type) + suffix;
    cases.add(name, 1, [&](Recording& r) { r.matmul(p.m, p.k, p.n, Layout::nk, p.kernel, type, p.variant); });
  }
}

void add_matmuls(Cases& cases) {
  add_matmul(cases, {MatmulKernel::naive, 64, 64, 64}, "");
  for (const std::uint64_t m : {1u, 2u, 4u, 8u}) {
    const std::string rows = "/" + std::to_string(m);
    // So many columns that no k need be split.
    add_matmul(cases, {MatmulKernel::gemv, m, 4096, 32768}, rows);
    add_matmul(cases, {MatmulKernel::gemv, m, 4095, 32767}, rows + "/odd");
    add_weights(cases, {MatmulKernel::gemv, m, 4096, 4096}, rows);
  }
  // The selector takes smaller tiles for smaller products.
  constexpr std::uint64_t sizes[] = {4096, 1024, 256};
  for (const std::uint64_t size : sizes) {
    add_matmul(cases, {MatmulKernel::tiled, size, size, size}, "");
    add_matmul(cases, {MatmulKernel::tiled, size - 1, size - 1, size - 1}, "/odd", {true});
    add_weights(cases, {MatmulKernel::tiled, size, size, size}, "");
  }
  add_matmul(cases, {MatmulKernel::tiled, 64, 8192, 64}, "/slices", {false, true}, 2);
  add_matmul(cases, {MatmulKernel::tiled, 63, 8192, 63}, "/slices/odd", {true}, 2);
}

// By matrix units, where the build and the device have them.
void add_matrix_units(Cases& cases) {
  for (std::uint32_t variant = 1; variant <= matmul_variants(MatmulKernel::coopmat, Layout::nk); ++variant) {
    add_matmul(cases, {MatmulKernel::coopmat, 4096, 4096, 4096, variant}, "");
    add_matmul(cases, {MatmulKernel::coopmat, 4095, 4095, 4095, variant}, "/odd", {true});
    add_weights(cases, {MatmulKernel::coopmat, 4096, 4096, 4096, variant}, "");
  }
}

// Kernels for CPU drivers, which others run only if told to: small tiles, of one row.
void add_exact_subgroups(Cases& cases) {
  auto add = [&](const char* name, Layout layout, MatmulKernel kernel, std::uint32_t variant, std::size_t dispatches) {
    cases.add(name, dispatches, [&](Recording& r) { r.matmul(1, 1024, 4096, layout, kernel, DType::f32, variant); });
  };
  add("matmul/subgroup/nk/1x8", Layout::nk, MatmulKernel::subgroup, 2, 1);
  add("matmul/subgroup/kn/1x2", Layout::kn, MatmulKernel::subgroup, 2, 1);
  add("matmul/panel/nk/1x8", Layout::nk, MatmulKernel::panel, 9, 1);
}

void add_catalogue(Cases& cases) {
  for (const brontes::cases::NamedCaseRoom& room : brontes::cases::op_cases()) {
    if (room.room.benchmarks == nullptr) continue;
    for (const brontes::cases::OpBenchmark& b : room.room.benchmarks()) cases.add(b.op);
  }
}

// What devices without subgroup arithmetic get.
void add_without_subgroups(Cases& cases) {
  for (const std::uint64_t m : {1u, 8u}) {
    add_matmul(cases, {MatmulKernel::gemv, m, 4096, 32768}, "/" + std::to_string(m) + "/no-subgroups");
  }
}

}  // namespace

Result<std::vector<Case>> all_cases(const brontes::plan::Traits& traits) {
  Cases cases(traits);
  add_single_ops(cases);
  add_fused(cases);
  add_reductions(cases);
  add_matmuls(cases);
  const brontes::kernels::Kernel& coopmat = brontes::kernels::get(brontes::kernels::Id::matmul_coopmat);
  if (traits.matrices && coopmat.has(brontes::kernels::AccessMode::storage)) add_matrix_units(cases);
  if (traits.exact_subgroups) add_exact_subgroups(cases);
  add_catalogue(cases);
  auto all = cases.take();
  if (!all) return all;

  brontes::plan::Traits without = traits;
  without.subgroup_operations = false;
  Cases more(without);
  add_without_subgroups(more);
  auto rest = more.take();
  if (!rest) return rest;
  for (Case& c : *rest) {
    if (c.kernel == brontes::kernels::Id::matmul_gemv && c.name.find("/nk") != std::string::npos) {
      all->push_back(std::move(c));
    }
  }
  return all;
}

}  // namespace kernel_report
