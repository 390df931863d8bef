// The arena of before Batch::reset(), for what is recorded next.
#pragma once

#include "record/graph.hpp"
#include "vk/context.hpp"
#include "vk/memory.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace brontes {

/// Keeps one arena for the next execution. None in a forked process, where a thread that does not exist may have the
/// lock.
///
/// Thread-safety: one thread at a time, but for reclaim().
class SpareArena final : public vk::Reclaimer {
 public:
  explicit SpareArena(vk::Context* context) : context_(context) {
    if (context_ != nullptr) context_->memory().add(*context_, *this);
  }
  ~SpareArena() {
    if (context_ != nullptr) context_->memory().remove(*context_, *this);
  }
  SpareArena(const SpareArena&) = delete;
  SpareArena& operator=(const SpareArena&) = delete;

  void reclaim() noexcept override { take(); }

  std::shared_ptr<vk::Allocation> take() noexcept {
    if (context_ == nullptr || context_->abandoned()) return nullptr;
    const std::lock_guard lock(mutex_);
    return std::exchange(arena_, nullptr);
  }

  /// The largest one stays.
  void offer(const std::shared_ptr<vk::Allocation>& arena) noexcept {
    if (keep(arena)) unused_ = 0;
  }

  /// It was taken, and an execution found no use for it. After a few of them it goes.
  void return_unused(const std::shared_ptr<vk::Allocation>& arena) noexcept {
    constexpr int most_unused = 4;
    if (++unused_ < most_unused) keep(arena);
  }

 private:
  /// Whether there was none as large.
  bool keep(const std::shared_ptr<vk::Allocation>& arena) noexcept {
    if (context_ == nullptr || context_->abandoned()) return false;
    const std::lock_guard lock(mutex_);
    if (arena_ && arena_->bytes() >= arena->bytes()) return false;
    arena_ = arena;
    return true;
  }

  vk::Context* context_;
  std::mutex mutex_;
  std::shared_ptr<vk::Allocation> arena_;
  int unused_ = 0;  // executions in a row
};

/// Nobody else has it, and no work in flight uses it.
inline bool is_idle(const std::shared_ptr<vk::Allocation>& arena) {
  if (arena.use_count() != 1) return false;
  // A Program that let go of it in another thread had said before when it used it last. Letting go of a copy makes
  // that visible here; a fence would too, but the thread sanitizer does not know fences.
  std::shared_ptr<vk::Allocation>(arena).reset();
  return arena->context().queue().reached(arena->last_use);
}

/// An idle arena that uploads are written to as they are recorded. If the plan then wants them where they are, the
/// execution uses that arena, and they are not copied again.
class ArenaLanding final : public record::Landing {
 public:
  ArenaLanding(std::shared_ptr<vk::Allocation> arena, std::uint64_t alignment)
      : Landing(arena->bytes(), alignment), arena_(std::move(arena)) {}

  Error write(std::uint64_t offset, const void* data, std::uint64_t bytes) override {
    // In a forked process the memory may be the parent's, too.
    if (arena_->context().abandoned()) return arena_->context().usable();
    return arena_->write(offset, data, bytes);
  }
  const std::byte* memory() const noexcept override { return arena_->mapped(); }
  const std::shared_ptr<vk::Allocation>& arena() const noexcept { return arena_; }

 private:
  std::shared_ptr<vk::Allocation> arena_;
};

}  // namespace brontes
