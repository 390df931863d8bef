// Hazards, levels and barriers.
//
// Dispatches arrive in recording order, which defines what the program means. Every byte range
// remembers who wrote it last and who has read it since; that gives each dispatch its hazards, and
// its level is one more than the highest level among them. Memory is what counts, not values: two
// values in the same bytes (a store to an imported buffer, memory reuse) conflict like one.
#include "plan/plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

namespace brontes::plan {
namespace {

constexpr std::uint32_t nobody = ~std::uint32_t{0};

struct Segment {
  std::uint64_t end = 0;
  std::uint32_t writer = nobody;
  std::vector<std::uint32_t> readers;  // since the write
};

// The touched bytes of one resource, as disjoint segments by their first byte.
class History {
 public:
  // Calls visit(begin, segment) for every segment in [begin, end), after making segments begin and
  // end exactly there; gaps become fresh segments.
  template <class Visit>
  void for_each(std::uint64_t begin, std::uint64_t end, Visit visit) {
    split(begin);
    split(end);
    auto it = segments_.lower_bound(begin);
    std::uint64_t at = begin;
    while (at < end) {
      if (it == segments_.end() || it->first > at) {
        const std::uint64_t gap_end = it == segments_.end() ? end : std::min(end, it->first);
        it = segments_.emplace_hint(it, at, Segment{gap_end, nobody, {}});
      }
      visit(it->first, it->second);
      at = it->second.end;
      ++it;
    }
  }

  // Makes [begin, end) one segment written by `writer`.
  void overwrite(std::uint64_t begin, std::uint64_t end, std::uint32_t writer) {
    split(begin);
    split(end);
    auto it = segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
    segments_.emplace_hint(it, begin, Segment{end, writer, {}});
  }

 private:
  void split(std::uint64_t at) {
    auto it = segments_.upper_bound(at);
    if (it == segments_.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Segment tail = it->second;
    it->second.end = at;
    segments_.emplace_hint(std::next(it), at, std::move(tail));
  }

  std::map<std::uint64_t, Segment> segments_;
};

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
  std::unordered_map<record::ResourceId, History> histories;
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
    auto regions = [&](bool (Dispatch::*wanted)(std::size_t) const noexcept, auto visit) {
      for (std::size_t b = 0; b < dispatch.binding_count; ++b) {
        if ((dispatch.*wanted)(b) && dispatch.bindings[b].bytes != 0) visit(dispatch.bindings[b]);
      }
    };

    regions(&Dispatch::reads, [&](const Region& r) {
      histories[r.resource].for_each(r.offset, r.offset + r.bytes, [&](std::uint64_t begin, Segment& s) {
        if (s.writer != nobody) {
          conflict(HazardKind::read_after_write, s.writer, {r.resource, begin, s.end - begin});
        }
        if (s.readers.empty() || s.readers.back() != i) s.readers.push_back(i);
      });
    });
    regions(&Dispatch::writes, [&](const Region& r) {
      History& history = histories[r.resource];
      history.for_each(r.offset, r.offset + r.bytes, [&](std::uint64_t begin, const Segment& s) {
        const Region shared{r.resource, begin, s.end - begin};
        for (std::uint32_t reader : s.readers) {
          if (reader != i) conflict(HazardKind::write_after_read, reader, shared);
        }
        if (s.writer != nobody && s.writer != i) conflict(HazardKind::write_after_write, s.writer, shared);
      });
      history.overwrite(r.offset, r.offset + r.bytes, i);
    });
    join(hazards, first_hazard);
    levels = std::max(levels, dispatch.level + 1);
  }

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

  barriers.clear();
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
