#include "plan/matmul.hpp"

#include "api/access.hpp"

namespace brontes {

MatmulChoice explain_matmul(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                            const MatmulOptions& options) {
  return plan::explain({m, k, n, options.layout}, DeviceAccess::context(device)->traits(),
                       {options.kernel, options.variant});
}

}  // namespace brontes
