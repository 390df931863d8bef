#include "ops/matmul.hpp"

#include "api/access.hpp"

namespace brontes {
namespace {

MatmulChoice no_choice(std::string reason) {
  MatmulChoice choice;
  choice.reason = std::move(reason);
  return choice;
}

MatmulChoice explain(const Device& device, plan::MatmulProblem problem, const MatmulOptions& options) {
  const auto& engine = DeviceAccess::engine(device);
  if (!engine) return no_choice("the Device has been moved from");
  problem.f16_inputs = options.precision == Precision::f16;
  return plan::explain(problem, engine->traits(), {options.kernel, options.variant});
}

}  // namespace

MatmulChoice explain_matmul(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                            const MatmulOptions& options) {
  return value_or_empty([&] { return explain(device, {m, k, n, options.layout}, options); });
}

MatmulChoice explain_matmul(const Device& device, const Shape& a, const Shape& b, const MatmulOptions& options) {
  return value_or_empty([&] {
    const auto sizes = plan::matmul_sizes(a, b, options.layout);
    if (!sizes) return no_choice(sizes.error().message);
    plan::MatmulProblem problem{sizes->m, sizes->k, sizes->n, options.layout};
    problem.set(sizes->batch);
    return explain(device, problem, options);
  });
}

}  // namespace brontes
