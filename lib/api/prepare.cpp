#include <brontes/prepare.hpp>

#include "api/access.hpp"

namespace brontes {

Result<Prepared> prepare(const Batch& batch, const PrepareOptions& options) {
  return guarded("prepare", [&] { return RunAccess::prepare(batch, options); });
}

Result<std::vector<std::uint8_t>> save_pipelines(const Device& device) {
  return guarded("save_pipelines", [&]() -> Result<std::vector<std::uint8_t>> {
    const auto context = DeviceAccess::context(device);
    if (!context) return Error(Errc::invalid_argument, "save_pipelines: the Device has been moved from");
    return context->cache_blob();
  });
}

Error load_pipelines(const Device& device, Span<const std::uint8_t> bytes) {
  return guarded("load_pipelines", [&]() -> Error {
    const auto context = DeviceAccess::context(device);
    if (!context) return Error(Errc::invalid_argument, "load_pipelines: the Device has been moved from");
    if (bytes.data() == nullptr && !bytes.empty()) {
      return Error(Errc::null_data, "load_pipelines: a null pointer for " + std::to_string(bytes.size()) + " bytes");
    }
    return context->add_cache_blob(bytes);
  });
}

}  // namespace brontes
