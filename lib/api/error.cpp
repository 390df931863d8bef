#include <brontes/error.hpp>
#include <brontes/pipeline_cache.hpp>
#include <brontes/tuning_file.hpp>
#include <brontes/version.hpp>

namespace brontes {

const char* to_string(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::empty_input: return "empty_input";
    case Errc::null_data: return "null_data";
    case Errc::shape_mismatch: return "shape_mismatch";
    case Errc::type_mismatch: return "type_mismatch";
    case Errc::size_overflow: return "size_overflow";
    case Errc::limit_exceeded: return "limit_exceeded";
    case Errc::not_found: return "not_found";
    case Errc::already_exists: return "already_exists";
    case Errc::invalid_tensor: return "invalid_tensor";
    case Errc::foreign_tensor: return "foreign_tensor";
    case Errc::stale_tensor: return "stale_tensor";
    case Errc::not_executed: return "not_executed";
    case Errc::not_kept: return "not_kept";
    case Errc::no_loader: return "no_loader";
    case Errc::no_driver: return "no_driver";
    case Errc::no_device: return "no_device";
    case Errc::out_of_memory: return "out_of_memory";
    case Errc::device_lost: return "device_lost";
    case Errc::timeout: return "timeout";
    case Errc::unsupported: return "unsupported";
    case Errc::io: return "io";
    case Errc::vulkan: return "vulkan";
  }
  return "unknown";
}

const char* to_string(PipelineCacheState state) noexcept {
  switch (state) {
    case PipelineCacheState::off: return "off";
    case PipelineCacheState::cold: return "cold";
    case PipelineCacheState::warm: return "warm";
    case PipelineCacheState::rejected: return "rejected";
  }
  return "unknown";
}

const char* to_string(TuningState state) noexcept {
  switch (state) {
    case TuningState::off: return "off";
    case TuningState::none: return "none";
    case TuningState::loaded: return "loaded";
    case TuningState::measured: return "measured";
    case TuningState::rejected: return "rejected";
  }
  return "unknown";
}

const char* version() noexcept { return BRONTES_VERSION; }

}  // namespace brontes
