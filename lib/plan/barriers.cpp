// Hazards, levels and barriers.
//
// Dispatches arrive in recording order, which defines what the program means. Every byte range
// remembers who wrote it last and who has read it since; that gives each dispatch its hazards, and
// its level is one more than the highest level among them. Memory is what counts, not values: two
// values in the same bytes (a store to an imported buffer, memory reuse) conflict like one.
#include "plan/plan.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace brontes::plan {
namespace {

constexpr std::uint32_t nobody = ~std::uint32_t{0};

// The arena first, then the resources.
std::size_t history_of(const Region& region) { return region.resource == arena ? 0 : region.resource + std::size_t{1}; }

// Who touched the bytes of one resource. These are cut wherever a range begins or ends that some dispatch touches, so
// that every range is a run of whole segments.
class History {
 public:
  void touch(const Region& region) {
    cuts_.push_back(region.offset);
    cuts_.push_back(region.offset + region.bytes);
  }
  // Nothing new is touched from here on.
  void close() {
    if (!std::is_sorted(cuts_.begin(), cuts_.end())) std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    segments_.resize(cuts_.size());  // from each cut to the next
  }

  struct Segment {
    std::uint32_t writer = nobody;
    std::uint32_t last_reader = nobody;  // since the write: an index into the readers
  };

  // Calls visit(segment, its bytes) for all of a region.
  template <class Visit>
  void for_each(const Region& region, Visit visit) {
    auto at = static_cast<std::size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), region.offset) - cuts_.begin());
    for (const std::uint64_t end = region.offset + region.bytes; cuts_[at] != end; ++at) {
      visit(segments_[at], Region{region.resource, cuts_[at], cuts_[at + 1] - cuts_[at]});
    }
  }

 private:
  std::vector<std::uint64_t> cuts_;
  std::vector<Segment> segments_;
};

// Those of a segment are a list, the last one first.
class Readers {
 public:
  void add(History::Segment& segment, std::uint32_t reader) {
    if (segment.last_reader != nobody && all_[segment.last_reader].who == reader) return;
    all_.push_back({reader, segment.last_reader});
    segment.last_reader = static_cast<std::uint32_t>(all_.size() - 1);
  }
  template <class Visit>
  void for_each(const History::Segment& segment, Visit visit) const {
    for (std::uint32_t r = segment.last_reader; r != nobody; r = all_[r].before) visit(all_[r].who);
  }

 private:
  struct Reader {
    std::uint32_t who;
    std::uint32_t before;
  };
  std::vector<Reader> all_;
};

template <class Visit>
void for_each_used(const Dispatch& dispatch, Visit visit) {
  for (std::size_t b = 0; b < dispatch.binding_count; ++b) {
    if ((dispatch.used >> b & 1u) != 0 && dispatch.bindings[b].bytes != 0) visit(b, dispatch.bindings[b]);
  }
}

std::vector<History> make_histories(const std::vector<Dispatch>& dispatches) {
  std::size_t resources = 0;
  auto count = [&](std::size_t, const Region& r) {
    if (r.resource != arena) resources = std::max<std::size_t>(resources, r.resource + std::size_t{1});
  };
  for (const Dispatch& d : dispatches) for_each_used(d, count);
  std::vector<History> histories(resources + 1);
  for (const Dispatch& d : dispatches) {
    for_each_used(d, [&](std::size_t, const Region& r) { histories[history_of(r)].touch(r); });
  }
  for (History& history : histories) history.close();
  return histories;
}

// Joins hazards of one kind between the same two dispatches whose bytes touch: an operand read twice, or
// a range that other accesses have cut up, is one hazard.
void join(std::vector<Hazard>& hazards, std::size_t first) {
  auto key = [](const Hazard& h) { return std::tuple(h.kind, h.from, h.region.resource, h.region.offset); };
  const auto begin = hazards.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, hazards.end(), [&](const Hazard& a, const Hazard& b) { return key(a) < key(b); });
  auto last = begin;
  for (auto it = begin; it != hazards.end(); ++it) {
    Region& joined = last->region;
    if (it->kind == last->kind && it->from == last->from && it->region.resource == joined.resource &&
        it->region.offset <= joined.offset + joined.bytes) {
      const std::uint64_t end = std::max(joined.offset + joined.bytes, it->region.offset + it->region.bytes);
      joined.bytes = end - joined.offset;
    } else {
      *++last = *it;
    }
  }
  if (begin != hazards.end()) hazards.erase(std::next(last), hazards.end());
}

}  // namespace

const char* to_string(HazardKind kind) noexcept {
  switch (kind) {
    case HazardKind::read_after_write: return "RAW";
    case HazardKind::write_after_read: return "WAR";
    case HazardKind::write_after_write: return "WAW";
  }
  return "?";
}

void order(std::vector<Dispatch>& dispatches, std::vector<Barrier>& barriers) {
  std::vector<History> histories = make_histories(dispatches);
  Readers readers;
  std::vector<Hazard> hazards;
  std::uint32_t levels = 0;

  for (std::uint32_t i = 0; i < dispatches.size(); ++i) {
    Dispatch& dispatch = dispatches[i];
    dispatch.level = 0;
    const std::size_t first_hazard = hazards.size();
    auto conflict = [&](HazardKind kind, std::uint32_t from, const Region& region) {
      hazards.push_back({kind, from, i, region});
      dispatch.level = std::max(dispatch.level, dispatches[from].level + 1);
    };

    for_each_used(dispatch, [&](std::size_t b, const Region& r) {
      if (!dispatch.reads(b)) return;
      histories[history_of(r)].for_each(r, [&](History::Segment& s, const Region& shared) {
        if (s.writer != nobody) conflict(HazardKind::read_after_write, s.writer, shared);
        readers.add(s, i);
      });
    });
    for_each_used(dispatch, [&](std::size_t b, const Region& r) {
      if (!dispatch.writes(b)) return;
      histories[history_of(r)].for_each(r, [&](History::Segment& s, const Region& shared) {
        readers.for_each(s, [&](std::uint32_t reader) {
          if (reader != i) conflict(HazardKind::write_after_read, reader, shared);
        });
        if (s.writer != nobody && s.writer != i) conflict(HazardKind::write_after_write, s.writer, shared);
        s = {i, nobody};
      });
    });
    join(hazards, first_hazard);
    levels = std::max(levels, dispatch.level + 1);
  }

  barriers.clear();
  if (hazards.empty()) return;

  // Every level keeps a dispatch: what one of the next level waits for has to stay where it is.
  std::vector<std::uint32_t> latest(dispatches.size(), levels);
  for (const Hazard& h : hazards) latest[h.from] = std::min(latest[h.from], dispatches[h.to].level - 1);
  for (std::uint32_t i = 0; i < dispatches.size(); ++i) {
    if (dispatches[i].late && latest[i] != levels) dispatches[i].level = latest[i];
  }

  // Counting sort by level; within a level the recording order stays.
  std::vector<std::uint32_t> first(levels + 1, 0);
  for (const Dispatch& d : dispatches) ++first[d.level + 1];
  for (std::uint32_t level = 0; level < levels; ++level) first[level + 1] += first[level];
  std::vector<std::uint32_t> position(dispatches.size());
  std::vector<std::uint32_t> next(first.begin(), first.end());
  for (std::uint32_t i = 0; i < dispatches.size(); ++i) position[i] = next[dispatches[i].level]++;

  for (std::uint32_t level = 1; level < levels; ++level) barriers.push_back({first[level], {}});
  for (Hazard hazard : hazards) {
    const std::uint32_t level = dispatches[hazard.to].level;
    if (dispatches[hazard.from].level + 1 != level) continue;  // an earlier barrier is enough
    hazard.from = position[hazard.from];
    hazard.to = position[hazard.to];
    barriers[level - 1].causes.push_back(hazard);
  }

  if (std::is_sorted(position.begin(), position.end())) return;
  std::vector<Dispatch> sorted(dispatches);
  for (std::uint32_t i = 0; i < dispatches.size(); ++i) sorted[position[i]] = dispatches[i];
  dispatches.swap(sorted);
}

}  // namespace brontes::plan
