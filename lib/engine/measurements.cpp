#include "engine/measurements.hpp"

#include "files/keyed_file.hpp"
#include "util/hash.hpp"
#include "vk/loader.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace brontes::engine {
namespace {

bool any(const SimulatedLimits& limits) {
  return limits.max_group_count != 0 || limits.max_group_invocations != 0 || limits.max_shared_bytes != 0 ||
         limits.max_storage_range != 0 || limits.max_loop_iterations != 0 || limits.subgroup_size != 0 ||
         limits.no_subgroup_operations || limits.no_subgroup_size_control || limits.no_float_controls ||
         limits.staged_memory || limits.uncached_memory || limits.vendor_id != 0;
}

// Choices from files that were right, by device and access: what one Device has seen counts for all of the process.
// Only ever added to and without a lock, so that a child of fork() finds it whole.
struct Right {
  std::uint64_t key;
  const Right* next;
};
std::atomic<const Right*> all_right{nullptr};

bool is_right(std::uint64_t key) noexcept {
  const Right* right = all_right.load(std::memory_order_acquire);
  while (right != nullptr && right->key != key) right = right->next;
  return right != nullptr;
}

void remember_right(std::uint64_t key) noexcept {
  if (is_right(key)) return;
  // Without memory for it the next Device checks again.
  auto* right = new (std::nothrow) Right{key, all_right.load(std::memory_order_relaxed)};
  if (right == nullptr) return;
  while (!all_right.compare_exchange_weak(right->next, right, std::memory_order_acq_rel)) {
  }
}

std::uint64_t key_of(const files::FileIdentity& identity, const plan::Access& access, const plan::TunedMatmul& tuned) {
  util::Hash hash;
  for (std::uint32_t word : {identity.vendor_id, identity.device_id, identity.driver_id, identity.driver_version}) {
    hash.add(word);
  }
  for (const auto& uuid : {identity.pipeline_cache_uuid, identity.device_uuid, identity.driver_uuid}) {
    for (std::uint8_t byte : uuid) hash.add(byte);
  }
  for (auto mode : {access.general, access.panels}) hash.add(static_cast<std::uint64_t>(mode));
  hash.add(static_cast<std::uint64_t>(tuned.choice.kernel));
  hash.add(tuned.choice.variant);
  hash.add(static_cast<std::uint64_t>(tuned.layout));
  hash.add(static_cast<std::uint64_t>(tuned.type));
  hash.add(tuned.f16_inputs ? 1 : 0);
  return util::finish(hash.value());
}

void count(const plan::Tuning& tuning, TuningStatus& status) {
  status.shapes = tuning.matmuls.size();
  status.changed = 0;
  for (const plan::TunedMatmul& t : tuning.matmuls) {
    if (t.choice.kernel != MatmulKernel::automatic) ++status.changed;
  }
}

}  // namespace

void Measurements::load(const vk::Instance& instance, const vk::PhysicalDevice& device, const DeviceOptions& options) {
  if (!options.tuning.enabled) {
    status_.note = "disabled by DeviceOptions";
    return;
  }
  status_.state = TuningState::none;
  identity_ = vk::identity_of(device);
  if (any(options.simulate)) {
    status_.note = "tuning file off: limits are simulated";
  } else if (!options.tuning.path.empty()) {
    status_.path = options.tuning.path;
  } else if (!options.pipeline_cache.path.empty()) {
    status_.path = files::companion_path(files::tuning_file, options.pipeline_cache.path);
  } else {
    status_.path = files::default_path(files::tuning_file, identity_, status_.note);
  }
  if (!status_.path.empty()) {
    const files::FileLoad file = files::load_file(files::tuning_file, status_.path, identity_);
    status_.note = file.note;
    if (file.state == files::FileState::rejected) status_.state = TuningState::rejected;
    if (file.state == files::FileState::loaded) {
      auto parsed = plan::parse_tuning(file.payload);
      if (parsed) {
        status_.state = TuningState::loaded;
        count(*parsed, status_);
        all_.push_back(std::make_unique<const plan::Tuning>(std::move(*parsed)));
        in_use_ = all_.back().get();
      } else {
        status_.state = TuningState::rejected;
        status_.note = files::ignored_note(files::tuning_file, status_.path, parsed.error().message);
      }
    }
  }
  if (!status_.note.empty()) {
    instance.report(status_.state == TuningState::rejected ? Severity::warning : Severity::info, status_.note);
  }
}

TuningStatus Measurements::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Measurements::add(plan::Tuning measured) {
  const std::lock_guard lock(mutex_);
  plan::Tuning all = all_.empty() ? plan::Tuning() : *all_.back();
  for (const plan::TunedMatmul& t : measured.matmuls) checked_.insert(choice_of(t));
  plan::merge(all, std::move(measured));
  status_.state = TuningState::measured;
  if (!status_.path.empty()) status_.note.clear();
  use(std::move(all));
}

bool Measurements::calibration_due(std::uint64_t bytes, std::uint64_t enough) noexcept {
  if (bytes == 0) return false;
  const std::uint64_t before = moved_.fetch_add(bytes, std::memory_order_relaxed);
  if (before >= enough || before + bytes < enough) return false;
  const plan::Tuning* known = in_use();
  return known == nullptr || !known->elementwise;
}

void Measurements::set_elementwise(kernels::AccessMode fastest) {
  const std::lock_guard lock(mutex_);
  plan::Tuning all = all_.empty() ? plan::Tuning() : *all_.back();
  all.elementwise = fastest;
  status_.state = TuningState::measured;
  use(std::move(all));
  if (status_.path.empty()) return;
  // Another process may have tuned the device meanwhile. A file that was not accepted is left to tune_matmul(), and one
  // that cannot be written is no matter: the next Device measures again.
  const files::FileLoad file = files::load_file(files::tuning_file, status_.path, identity_);
  if (file.state == files::FileState::rejected) return;
  plan::Tuning stored;
  if (file.state == files::FileState::loaded) {
    auto parsed = plan::parse_tuning(file.payload);
    if (!parsed) return;
    stored = std::move(*parsed);
  }
  stored.elementwise = fastest;
  static_cast<void>(files::save_file(files::tuning_file, status_.path, identity_, plan::serialize(stored)));
}

// With the mutex held.
void Measurements::use(plan::Tuning tuning) {
  count(tuning, status_);
  all_.push_back(std::make_unique<const plan::Tuning>(std::move(tuning)));
  in_use_.store(all_.back().get(), std::memory_order_release);
}

bool Measurements::checked(Span<const plan::TunedMatmul* const> choices) const {
  if (choices.empty()) return true;
  const std::lock_guard lock(mutex_);
  return std::all_of(choices.begin(), choices.end(), [&](const plan::TunedMatmul* t) {
    return checked_.count(choice_of(*t)) != 0 ||
           (!all_.empty() && is_right(key_of(identity_, all_.back()->access, *t)));
  });
}

void Measurements::judge(const plan::TunedMatmul& choice, bool right) {
  const std::lock_guard lock(mutex_);
  checked_.insert(choice_of(choice));
  if (right && !all_.empty()) remember_right(key_of(identity_, all_.back()->access, choice));
  if (right || all_.empty()) return;
  plan::Tuning rest = *all_.back();
  std::erase_if(rest.matmuls, [&](const plan::TunedMatmul& t) { return choice_of(t) == choice_of(choice); });
  use(std::move(rest));
}

Error Measurements::save() const {
  const std::lock_guard lock(mutex_);
  if (status_.path.empty()) return Error(Errc::io, status_.note);
  if (all_.empty()) return {};
  return files::save_file(files::tuning_file, status_.path, identity_, plan::serialize(*all_.back()));
}

}  // namespace brontes::engine
