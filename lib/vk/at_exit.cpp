#include "vk/at_exit.hpp"

#include "vk/context.hpp"
#include "vk/loader_lock.hpp"

#include <cstdlib>
#include <utility>

namespace brontes::vk {
namespace {

// Guarded by loader_mutex().
AtExit* first = nullptr;

}  // namespace

void AtExit::watch() noexcept {
  renew();  // every time, because each device may have loaded a driver
  const LoaderChange lock(loader_mutex());
  next_ = std::exchange(first, this);
  if (next_ != nullptr) next_->previous_ = this;
  watched_ = true;
}

void AtExit::forget() noexcept {
  if (!watched_) return;
  const LoaderChange lock(loader_mutex());
  (previous_ != nullptr ? previous_->next_ : first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  watched_ = false;
}

void AtExit::renew() noexcept {
  // Where there is no room left for it, nothing is lost but this protection.
  static_cast<void>(std::atexit([] { end_all(); }));
}

void AtExit::end_all() noexcept {
  const LoaderLookup lock(loader_mutex());
  for (AtExit* each = first; each != nullptr; each = each->next_) each->context_.end();
}

}  // namespace brontes::vk
