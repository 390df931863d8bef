#include <brontes/tuning.hpp>

#include "api/access.hpp"
#include "tune/tuner.hpp"

namespace brontes {

std::vector<MatmulShape> default_tune_shapes(bool quick) {
  return value_or_empty([&] { return tune::usual_shapes(quick); });
}

Result<TuneReport> tune_matmul(const Device& device, const TuneOptions& options) {
  return guarded("tune_matmul", [&]() -> Result<TuneReport> {
    const auto& engine = DeviceAccess::engine(device);
    if (!engine) return Error(Errc::invalid_argument, "tune_matmul: the Device has been moved from");
    return tune::tune(engine, options);
  });
}

}  // namespace brontes
