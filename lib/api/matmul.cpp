#include "ops/matmul.hpp"

#include "api/access.hpp"

namespace brontes {

MatmulChoice explain_matmul(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                            const MatmulOptions& options) {
  return value_or_empty([&] {
    return plan::explain({m, k, n, options.layout}, DeviceAccess::engine(device)->traits(),
                         {options.kernel, options.variant});
  });
}

MatmulChoice explain_matmul(const Device& device, const Shape& a, const Shape& b, const MatmulOptions& options) {
  return value_or_empty([&] {
    const auto sizes = plan::matmul_sizes(a, b, options.layout);
    if (!sizes) {
      MatmulChoice choice;
      choice.reason = sizes.error().message;
      return choice;
    }
    plan::MatmulProblem problem{sizes->m, sizes->k, sizes->n, options.layout};
    problem.set(sizes->batch);
    return plan::explain(problem, DeviceAccess::engine(device)->traits(), {options.kernel, options.variant});
  });
}

}  // namespace brontes
