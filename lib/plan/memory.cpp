// Liveness: temporaries share the arena.
//
// A temporary lives from the level that first touches it to the last. Levels are separated by
// barriers, so memory that changes hands between two levels adds no barrier; within a level nothing
// is shared, except by an elementwise dispatch that writes its result over an operand nobody needs any
// more.
#include "plan/plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace brontes::plan {
namespace {

constexpr std::uint32_t never = ~std::uint32_t{0};

struct Life {
  std::uint32_t first = never;
  std::uint32_t last = 0;
  std::uint32_t writer = never;       // the dispatch of level `first` that writes it, if it is one
  std::uint32_t last_reader = never;  // the dispatch of level `last` that reads it, if it is one
  std::uint32_t readers_at_last = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // with alignment
};

// Free ranges of the arena from `base` on, growing at the end as needed.
class Space {
 public:
  explicit Space(std::uint64_t base) : end_(base) {}

  std::uint64_t take(std::uint64_t bytes) {
    if (const auto best = by_size_.lower_bound({bytes, 0}); best != by_size_.end()) {
      const auto [size, offset] = *best;
      remove(free_.find(offset));
      if (size != bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    // A free range at the very end can grow.
    if (!free_.empty()) {
      const auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        const std::uint64_t offset = last->first;
        remove(last);
        end_ = offset + bytes;
        return offset;
      }
    }
    const std::uint64_t offset = end_;
    end_ += bytes;
    return offset;
  }

  void give(std::uint64_t offset, std::uint64_t bytes) {
    const auto next = free_.lower_bound(offset);
    const auto before = next == free_.begin() ? free_.end() : std::prev(next);
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    if (before != free_.end() && before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      remove(before);
    }
    add(offset, bytes);
  }

  std::uint64_t end() const noexcept { return end_; }

 private:
  using Free = std::map<std::uint64_t, std::uint64_t>;  // bytes by offset

  void add(std::uint64_t offset, std::uint64_t bytes) {
    free_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(Free::iterator range) {
    by_size_.erase(std::pair(range->second, range->first));
    free_.erase(range);
  }

  Free free_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // bytes and offset
  std::uint64_t end_;
};

class Reuse {
 public:
  Reuse(std::vector<Dispatch>& dispatches, Span<const Region> temporaries, std::uint32_t alignment)
      : dispatches_(dispatches), temporaries_(temporaries), alignment_(alignment) {}

  std::uint64_t run() {
    find_lives();
    const std::uint64_t end = assign();
    for (Dispatch& d : dispatches_) {
      for (std::size_t b = 0; b < d.binding_count; ++b) {
        const std::size_t t = index_of(d.bindings[b]);
        if (t != none) d.bindings[b].offset += lives_[t].offset - temporaries_[t].offset;  // a home may begin inside
      }
    }
    return end;
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t index_of(const Region& region) const {
    if (region.resource != arena || region.offset < temporaries_[0].offset) return none;
    const auto* it = std::upper_bound(temporaries_.begin(), temporaries_.end(), region.offset,
                                      [](std::uint64_t at, const Region& r) { return at < r.offset; });
    return static_cast<std::size_t>(it - temporaries_.begin()) - 1;
  }

  void find_lives() {
    lives_.resize(temporaries_.size());
    for (std::size_t t = 0; t < lives_.size(); ++t) {
      lives_[t].bytes = (temporaries_[t].bytes + alignment_ - 1) / alignment_ * alignment_;
    }
    for (std::uint32_t i = 0; i < dispatches_.size(); ++i) {
      const Dispatch& d = dispatches_[i];
      for (std::size_t b = 0; b < d.binding_count; ++b) {
        if ((d.used >> b & 1u) == 0) continue;
        const std::size_t t = index_of(d.bindings[b]);
        if (t == none) continue;
        Life& life = lives_[t];
        if (life.first == never) {
          life.first = d.level;
          life.writer = i;
        }
        if (d.level != life.last || life.last_reader == never) {
          life.last = d.level;
          life.readers_at_last = 0;
        }
        if (life.last_reader != i || life.readers_at_last == 0) ++life.readers_at_last;
        life.last_reader = i;
      }
    }
  }

  // The operand whose memory `t` may take, if there is one.
  std::size_t dying_operand(std::size_t t) const {
    const Life& life = lives_[t];
    const Dispatch& d = dispatches_[life.writer];
    if (d.kernel != kernels::Id::elementwise || d.level != life.first) return none;
    namespace kernel = kernels::elementwise;
    if (d.get(kernel::result1) != 0) return none;  // see homes.cpp: only with a single output
    // Both as a whole: what else lies in them has other lives.
    auto is_all_of = [&](std::size_t binding, std::size_t temporary) {
      return d.bindings[binding] == temporaries_[temporary];
    };
    if (!is_all_of(kernel::out0, t)) return none;
    constexpr kernel::Constant modes[] = {kernel::mode0, kernel::mode1, kernel::mode2, kernel::mode3};
    for (std::size_t i = 0; i < elementwise_max_inputs; ++i) {
      if (d.get(modes[i]) != static_cast<std::uint32_t>(ElementwiseMode::full)) continue;
      const std::size_t operand = index_of(d.bindings[i]);
      if (operand == none || !is_all_of(i, operand)) continue;
      const Life& dying = lives_[operand];
      if (dying.last == d.level && dying.readers_at_last == 1 && dying.last_reader == life.writer &&
          temporaries_[operand].bytes == temporaries_[t].bytes) {
        return operand;
      }
    }
    return none;
  }

  std::uint64_t assign() {
    Space space(temporaries_[0].offset);
    std::vector<std::size_t> by_first;
    for (std::size_t t = 0; t < lives_.size(); ++t) {
      if (lives_[t].first != never) by_first.push_back(t);
    }
    std::stable_sort(by_first.begin(), by_first.end(),
                     [&](std::size_t a, std::size_t b) { return lives_[a].first < lives_[b].first; });
    // Those whose memory is taken, as a list for each last level.
    std::uint32_t levels = 0;
    for (const Life& life : lives_) levels = std::max(levels, life.last + 1);
    std::vector<std::size_t> last_at(levels, none);
    std::vector<std::size_t> next(lives_.size(), none);
    std::vector<std::uint8_t> active(lives_.size(), 0);
    std::uint32_t level = 0;  // all that ended before it is given back
    for (std::size_t t : by_first) {
      for (; level < lives_[t].first; ++level) {
        for (std::size_t over = last_at[level]; over != none; over = next[over]) {
          if (active[over] != 0) space.give(lives_[over].offset, lives_[over].bytes);
          active[over] = 0;
        }
      }
      const std::size_t operand = dying_operand(t);
      if (operand != none && active[operand] != 0) {
        lives_[t].offset = lives_[operand].offset;
        active[operand] = 0;
      } else {
        lives_[t].offset = space.take(lives_[t].bytes);
      }
      active[t] = 1;
      next[t] = std::exchange(last_at[lives_[t].last], t);
    }
    return space.end();
  }

  std::vector<Dispatch>& dispatches_;
  Span<const Region> temporaries_;
  std::uint64_t alignment_;
  std::vector<Life> lives_;
};

}  // namespace

std::uint64_t reuse_memory(std::vector<Dispatch>& dispatches, Span<const Region> temporaries, std::uint32_t alignment) {
  if (temporaries.empty()) return 0;
  return Reuse(dispatches, temporaries, alignment).run();
}

}  // namespace brontes::plan
