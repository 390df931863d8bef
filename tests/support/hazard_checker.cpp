#include "support/hazard_checker.hpp"

#include "support/kernel_model.hpp"
#include "support/plan_replay.hpp"

#include <algorithm>
#include <numeric>
#include <ostream>

namespace brontes::test {
namespace {

using plan::Dispatch;
using plan::Hazard;
using plan::HazardKind;
using plan::Plan;
using plan::Region;

Region overlap(const Region& a, const Region& b) {
  if (a.resource != b.resource) return {a.resource, 0, 0};
  const std::uint64_t begin = std::max(a.offset, b.offset);
  const std::uint64_t end = std::min(a.offset + a.bytes, b.offset + b.bytes);
  return {a.resource, begin, end > begin ? end - begin : 0};
}

struct Accesses {
  std::vector<Region> reads;
  std::vector<Region> writes;
};

// A region with what is written behind its last element, if that is asked for.
Region written(const Dispatch& d, std::size_t binding, bool all) {
  Region r = d.bindings[binding];
  const std::uint64_t vector = 4 * r.element_bytes();
  if (all && writes_whole_vectors(d)) r.bytes = (r.bytes + vector - 1) / vector * vector;
  return r;
}

Accesses accesses_of(const Dispatch& dispatch, bool all) {
  Accesses found;
  const Touched touch = touched(dispatch);
  for (std::size_t i = 0; i < dispatch.binding_count; ++i) {
    if (dispatch.bindings[i].bytes == 0) continue;
    if ((dispatch.used >> i & 1u) == 0) continue;  // the replay objects where it should be used
    if ((touch.read >> i & 1u) != 0) found.reads.push_back(dispatch.bindings[i]);
    if ((touch.written >> i & 1u) != 0) found.writes.push_back(written(dispatch, i, all));
  }
  return found;
}

// The bytes that make `later` depend on `earlier` in one way.
std::vector<Region> conflicts(HazardKind kind, const Accesses& earlier, const Accesses& later) {
  const auto& first = kind == HazardKind::write_after_read ? earlier.reads : earlier.writes;
  const auto& second = kind == HazardKind::read_after_write ? later.reads : later.writes;
  std::vector<Region> shared;
  for (const Region& a : first) {
    for (const Region& b : second) {
      if (overlap(a, b).bytes != 0) shared.push_back(overlap(a, b));
    }
  }
  return shared;
}

constexpr HazardKind all_kinds[] = {HazardKind::read_after_write, HazardKind::write_after_read,
                                    HazardKind::write_after_write};

std::vector<Region> conflicts(const Accesses& earlier, const Accesses& later) {
  std::vector<Region> shared;
  for (HazardKind kind : all_kinds) {
    for (const Region& r : conflicts(kind, earlier, later)) shared.push_back(r);
  }
  return shared;
}

// True when every byte of `region` lies in one of `cover`.
bool covered(const Region& region, const std::vector<Region>& cover) {
  std::uint64_t at = region.offset;
  const std::uint64_t end = region.offset + region.bytes;
  while (at < end) {
    std::uint64_t next = at;
    for (const Region& c : cover) {
      if (c.resource == region.resource && c.offset <= at) next = std::max(next, c.offset + c.bytes);
    }
    if (next == at) return false;
    at = next;
  }
  return true;
}

std::string text(const Region& r) {
  return (r.resource == plan::arena ? std::string("arena") : "buffer " + std::to_string(r.resource)) + " [" +
         std::to_string(r.offset) + ", " + std::to_string(r.offset + r.bytes) + ")";
}

class Checker {
 public:
  Checker(const Plan& plan, const record::Graph& graph, const plan::PlanOptions& options, Recorded& recorded)
      : plan_(plan), graph_(graph), options_(options), recorded_(recorded) {}

  std::vector<Objection> run() {
    check_form();
    if (!well_formed_) return objections_;
    for (const Dispatch& d : plan_.dispatches) accesses_.push_back(accesses_of(d, false));
    for (const Dispatch& d : plan_.dispatches) all_accesses_.push_back(accesses_of(d, true));
    check_open_hazards();
    check_barriers_have_hazards();
    check_barrier_count();
    check_causes();
    check_aliases();
    check_counts();
    check_submits();
    for (std::string& what : replay(plan_, graph_, options_, recorded_)) {
      object(Rule::wrong_version, std::move(what));
    }
    return objections_;
  }

 private:
  void object(Rule rule, std::string what) { objections_.push_back({rule, std::move(what)}); }

  std::string name(std::size_t dispatch) const {
    const plan::Group& group = plan_.groups[plan_.dispatches[dispatch].group];
    const std::uint32_t node = group.root != plan::no_node ? group.root : group.program.steps[0].node;
    return "#" + std::to_string(dispatch) + " (" + record::name(graph_.nodes()[node]) + ")";
  }

  void check_form() {
    const std::size_t count = plan_.dispatches.size();
    std::uint32_t last = 0;
    for (const plan::Barrier& barrier : plan_.barriers) {
      if (barrier.before <= last || barrier.before >= count) {
        object(Rule::malformed, "a barrier stands before #" + std::to_string(barrier.before) + ", after one before #" +
                                    std::to_string(last) + ", among " + std::to_string(count) + " dispatches");
        return;
      }
      last = barrier.before;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Dispatch& d = plan_.dispatches[i];
      if (d.group >= plan_.groups.size()) {
        object(Rule::malformed, "#" + std::to_string(i) + " is for group " + std::to_string(d.group));
        return;
      }
      gap_.push_back(static_cast<std::size_t>(
          std::count_if(plan_.barriers.begin(), plan_.barriers.end(), [&](const auto& b) { return b.before <= i; })));
    }
    well_formed_ = true;
    for (std::size_t i = 0; i < count; ++i) {
      const Dispatch& d = plan_.dispatches[i];
      if (d.level != gap_[i]) {
        object(Rule::malformed, name(i) + " is of level " + std::to_string(d.level) + " but runs after " +
                                    std::to_string(gap_[i]) + " barriers");
      }
      for (std::size_t b = 0; b < d.binding_count; ++b) {
        const Region& r = d.bindings[b];
        if (r.resource == plan::arena && r.offset + r.bytes > plan_.arena_bytes) {
          object(Rule::malformed, name(i) + " is bound to " + text(r) + " of an arena of " +
                                      std::to_string(plan_.arena_bytes) + " bytes");
        }
      }
    }
  }

  template <class Visit>
  void for_each_pair_between_gaps(std::size_t earlier_gap, std::size_t later_gap, Visit visit) const {
    for (std::size_t a = 0; a < plan_.dispatches.size(); ++a) {
      if (gap_[a] != earlier_gap) continue;
      for (std::size_t b = a + 1; b < plan_.dispatches.size(); ++b) {
        if (gap_[b] == later_gap) visit(a, b);
      }
    }
  }

  void check_open_hazards() {
    for (std::size_t gap = 0; gap <= plan_.barriers.size(); ++gap) {
      for_each_pair_between_gaps(gap, gap, [&](std::size_t a, std::size_t b) {
        for (HazardKind kind : all_kinds) {
          for (const Region& r : conflicts(kind, all_accesses_[a], all_accesses_[b])) {
            object(Rule::open_hazard, std::string(plan::to_string(kind)) + " on " + text(r) + " from " + name(a) +
                                          " to " + name(b) + " with no barrier between them");
          }
        }
      });
    }
  }

  void check_barriers_have_hazards() {
    for (std::size_t i = 0; i < plan_.barriers.size(); ++i) {
      bool needed = false;
      for_each_pair_between_gaps(i, i + 1, [&](std::size_t a, std::size_t b) {
        needed = needed || !conflicts(accesses_[a], accesses_[b]).empty();
      });
      if (!needed) {
        object(Rule::barrier_without_hazard,
               "the barrier before #" + std::to_string(plan_.barriers[i].before) + " separates nothing that conflicts");
      }
    }
  }

  // Every conflicting pair needs a barrier in between, so a chain of n conflicts needs n of them, and as
  // many as the longest chain needs are enough. The order of conflicting dispatches is that of the plan:
  // that it is the right one is shown by the replay.
  void check_barrier_count() {
    std::vector<std::size_t> barriers_before(plan_.dispatches.size(), 0);
    std::size_t needed = 0;
    for (std::size_t later = 0; later < plan_.dispatches.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (barriers_before[earlier] + 1 <= barriers_before[later]) continue;
        if (conflicts(accesses_[earlier], accesses_[later]).empty()) continue;
        barriers_before[later] = barriers_before[earlier] + 1;
      }
      needed = std::max(needed, barriers_before[later]);
    }
    if (plan_.barriers.size() > needed) {
      object(Rule::too_many_barriers, std::to_string(plan_.barriers.size()) + " barriers; the longest chain of " +
                                          "hazards needs " + std::to_string(needed));
    }
  }

  // Within a dispatch there is no order, but for one invocation that reads its elements and then writes
  // them: an elementwise one with a single result may work in place. matmul's own C is read and written so.
  void check_aliases() {
    for (std::size_t i = 0; i < plan_.dispatches.size(); ++i) {
      const Dispatch& d = plan_.dispatches[i];
      Touched touch = touched(d);
      touch.read &= d.used;
      touch.written &= d.used;
      for (std::size_t w = 0; w < d.binding_count; ++w) {
        if ((touch.written >> w & 1u) == 0) continue;
        for (std::size_t b = 0; b < d.binding_count; ++b) {
          const Region shared = overlap(written(d, w, true), d.bindings[b]);
          if (b == w || shared.bytes == 0) continue;
          if ((touch.written >> b & 1u) != 0 && b < w) {
            object(Rule::unsafe_alias, name(i) + " writes two results to " + text(shared));
          }
          if ((touch.read >> b & 1u) != 0 && !in_place(d, touch, w, b)) {
            object(Rule::unsafe_alias, name(i) + " writes " + text(shared) + ", which it may still have to read");
          }
        }
      }
    }
  }

  static bool in_place(const Dispatch& d, const Touched& touch, std::size_t out, std::size_t in) {
    constexpr const char* modes[] = {"mode0", "mode1", "mode2", "mode3"};
    return d.kernel == kernels::Id::elementwise && touch.written == 1u << out && d.bindings[out] == d.bindings[in] &&
           constant(d, modes[in]) == static_cast<std::uint32_t>(plan::ElementwiseMode::full);
  }

  // Every op that is needed is in one group, or moves what is in its place already; no other op is.
  void check_counts() {
    const std::vector<bool> needed = find_needed(graph_, options_);
    std::vector<std::uint32_t> grouped(graph_.nodes().size(), 0);
    for (const plan::Group& g : plan_.groups) {
      if (g.root != plan::no_node) ++grouped[g.root];
      for (std::size_t s = 0; s < g.program.step_count; ++s) ++grouped[g.program.steps[s].node];
      if (g.prologue == plan::no_prologue) continue;
      const plan::ElementwiseProgram& prologue = plan_.prologues[g.prologue];
      for (std::size_t s = 0; s < prologue.step_count; ++s) ++grouped[prologue.steps[s].node];
    }
    std::uint64_t live = 0;
    for (std::size_t n = graph_.first_pending_node(); n < graph_.nodes().size(); ++n) {
      live += needed[n];
      const bool optional = needed[n] && graph_.nodes()[n].op->moves != nullptr;
      if (grouped[n] > needed[n] || (grouped[n] < needed[n] && !optional)) {
        object(Rule::miscounted, "op " + std::to_string(n) + " (" + record::name(graph_.nodes()[n]) + ") is in " +
                                     std::to_string(grouped[n]) + " groups" + (needed[n] ? "" : " and has no effect"));
      }
    }
    const std::uint64_t dead = graph_.nodes().size() - graph_.first_pending_node() - live;
    if (plan_.dropped_operations != dead) {
      object(Rule::miscounted, std::to_string(plan_.dropped_operations) + " ops dropped, of " + std::to_string(dead));
    }
    if (plan_.fused_operations != live - plan_.groups.size()) {
      object(Rule::miscounted, std::to_string(plan_.fused_operations) + " ops fused; " + std::to_string(live) +
                                   " ops in " + std::to_string(plan_.groups.size()) + " groups");
    }
    if (!options_.fuse && plan_.fused_operations != 0) object(Rule::miscounted, "ops are fused that should not be");
    if (plan_.arena_bytes > plan_.arena_bytes_without_reuse ||
        (!options_.reuse_memory && plan_.arena_bytes != plan_.arena_bytes_without_reuse)) {
      object(Rule::miscounted, "an arena of " + std::to_string(plan_.arena_bytes) + " bytes, and of " +
                                   std::to_string(plan_.arena_bytes_without_reuse) + " without reuse");
    }
  }

  // One after another they are all rows of all dispatches; none is past its bounds but those that cannot be cut.
  void check_submits() {
    const auto budget = static_cast<double>(options_.work_per_submit);
    std::uint32_t at = 0;
    std::uint32_t row = 0;
    for (const plan::DispatchRange& r : plan_.submits) {
      const bool empty = r.begin == r.end;
      if (r.begin != at || r.begin_row != row || r.end < r.begin || r.end > plan_.dispatches.size() ||
          (empty && !plan_.dispatches.empty())) {
        object(Rule::malformed, "a submit of [" + std::to_string(r.begin) + ", " + std::to_string(r.end) +
                                    "), from row " + std::to_string(r.begin_row) + " to " + std::to_string(r.end_row));
        return;
      }
      // What it is to hold, as parts of what it may, and how much of that could go elsewhere.
      double share = 0;
      std::uint64_t rows_that_count = 0;
      bool cut = true;
      for (std::uint32_t i = r.begin; i < r.end; ++i) {
        const Dispatch& d = plan_.dispatches[i];
        const std::uint32_t begin = i == r.begin ? r.begin_row : 0;
        const std::uint32_t end = i + 1 == r.end && r.end_row != 0 ? r.end_row : d.groups[1];
        const bool whole = begin == 0 && end == d.groups[1];
        if (begin >= end || end > d.groups[1] || (!whole && (!d.in_parts || !d.folded || d.groups[2] != 1))) {
          object(Rule::malformed, "rows " + std::to_string(begin) + " to " + std::to_string(end) + " of #" +
                                      std::to_string(i) + " in one submit");
          return;
        }
        const double all = budget == 0 ? 0 : static_cast<double>(d.work) / budget;
        share += all * (end - begin) / d.groups[1];
        if (all <= 0) continue;
        rows_that_count += d.in_parts ? end - begin : 1;
        // There is but one workgroup, or as little as can be of several.
        cut = cut && (!d.folded || d.groups[2] != 1 || (d.groups[0] == 1 && d.groups[1] == 1) || d.in_parts);
      }
      if (share > 1 + 1e-9 && (rows_that_count > 1 || !cut)) {
        object(Rule::malformed, "a submit of " + std::to_string(share) + " times what it may hold");
      }
      row = r.end_row;
      at = row == 0 ? r.end : r.end - 1;
    }
    if (at != plan_.dispatches.size() || row != 0) object(Rule::malformed, "dispatches that are never submitted");
    if (plan_.submits.size() != 1 && options_.work_per_submit == 0 && options_.seconds_per_submit == 0) {
      object(Rule::malformed, std::to_string(plan_.submits.size()) + " submits without a bound");
    }
  }

  void check_causes() {
    for (std::size_t i = 0; i < plan_.barriers.size(); ++i) {
      const plan::Barrier& barrier = plan_.barriers[i];
      for (std::size_t c = 0; c < barrier.causes.size(); ++c) check_cause(i, c);
      for_each_pair_between_gaps(i, i + 1, [&](std::size_t a, std::size_t b) {
        std::vector<Region> named;
        for (const Hazard& h : barrier.causes) {
          if (h.from == a && h.to == b) named.push_back(h.region);
        }
        for (const Region& r : conflicts(accesses_[a], accesses_[b])) {
          if (covered(r, named)) continue;
          object(Rule::missing_cause, "the barrier before #" + std::to_string(barrier.before) + " does not name " +
                                          name(a) + " -> " + name(b) + " on " + text(r));
          break;
        }
      });
    }
  }

  void check_cause(std::size_t index, std::size_t c) {
    const plan::Barrier& barrier = plan_.barriers[index];
    const Hazard& h = barrier.causes[c];
    const std::string what = std::string(plan::to_string(h.kind)) + " #" + std::to_string(h.from) + " -> #" +
                             std::to_string(h.to) + " on " + text(h.region);
    if (h.from >= plan_.dispatches.size() || h.to >= plan_.dispatches.size() || gap_[h.from] != index ||
        gap_[h.to] != index + 1) {
      object(Rule::false_cause, what + ": not across the barrier before #" + std::to_string(barrier.before));
      return;
    }
    if (h.region.bytes == 0 || !covered(h.region, conflicts(h.kind, accesses_[h.from], accesses_[h.to]))) {
      object(Rule::false_cause, what + ": they do not conflict so");
    }
    for (std::size_t other = 0; other < c; ++other) {
      const Hazard& o = barrier.causes[other];
      if (o.kind == h.kind && o.from == h.from && o.to == h.to && overlap(o.region, h.region).bytes != 0) {
        object(Rule::false_cause, what + ": named twice");
        break;
      }
    }
  }

  const Plan& plan_;
  const record::Graph& graph_;
  const plan::PlanOptions& options_;
  Recorded& recorded_;
  std::vector<Accesses> accesses_;
  std::vector<Accesses> all_accesses_;  // with what is written behind the last elements of results
  bool well_formed_ = false;            // enough to look further
  std::vector<std::size_t> gap_;        // by dispatch: how many barriers stand before it
  std::vector<Objection> objections_;
};

}  // namespace

const char* to_string(Rule rule) noexcept {
  switch (rule) {
    case Rule::malformed: return "malformed";
    case Rule::open_hazard: return "open hazard";
    case Rule::barrier_without_hazard: return "barrier without hazard";
    case Rule::too_many_barriers: return "too many barriers";
    case Rule::false_cause: return "false cause";
    case Rule::missing_cause: return "missing cause";
    case Rule::unsafe_alias: return "unsafe alias";
    case Rule::miscounted: return "miscounted";
    case Rule::wrong_version: return "wrong version";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const Objection& objection) {
  return out << to_string(objection.rule) << ": " << objection.text;
}

std::vector<Objection> check_plan(const plan::Plan& plan, const record::Graph& graph,
                                  const plan::PlanOptions& options) {
  Recorded recorded = run_recording(graph);
  return check_plan(plan, graph, options, recorded);
}

std::vector<Objection> check_plan(const plan::Plan& plan, const record::Graph& graph, const plan::PlanOptions& options,
                                  Recorded& recorded) {
  return Checker(plan, graph, options, recorded).run();
}

std::string describe(const std::vector<Objection>& objections) {
  std::string all;
  for (const Objection& o : objections) all += std::string(to_string(o.rule)) + ": " + o.text + "\n";
  return all;
}

bool objects(const std::vector<Objection>& objections, Rule rule) {
  return std::any_of(objections.begin(), objections.end(), [&](const Objection& o) { return o.rule == rule; });
}

}  // namespace brontes::test
