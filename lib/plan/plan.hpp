// What will run: dispatches in order, barriers with their causes, and where every value lies.
// Plain data made by pure functions; encode/ turns it into a command buffer.
#pragma once

#include "kernels.hpp"
#include "plan/program.hpp"
#include "plan/traits.hpp"
#include "record/graph.hpp"

#include <brontes/error.hpp>
#include <brontes/program.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace brontes::plan {

/// Memory a plan touches: its own arena, or a resource of the graph.
inline constexpr record::ResourceId arena = record::no_resource;

struct Region {
  record::ResourceId resource = arena;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool half = false;  // its elements are f16

  /// Of one element.
  std::uint64_t element_bytes() const noexcept { return half ? 2 : 4; }

  friend bool operator==(const Region&, const Region&) = default;
};

/// One vkCmdDispatch.
struct Dispatch {
  static constexpr std::size_t max_bindings = 8;
  static constexpr std::size_t max_constants = 32;
  static constexpr std::size_t max_push_bytes = 128;

  kernels::Ref kernel;
  kernels::AccessMode access = kernels::AccessMode::storage;
  std::uint32_t group = 0;          // what it is for: an index into Plan::groups
  std::uint32_t pass = 0;           // which of the dispatches of its group, in the order the op meant them
  std::uint32_t level = 0;          // dispatches of one level share the gap between two barriers
  std::uint64_t work = 0;           // multiply-adds or elements, for the budget of a submit
  std::uint64_t multiply_adds = 0;  // of a product; 0 for everything else
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::array<std::uint32_t, max_constants> constants{};  // in the order of Kernel::constants
  std::array<Region, max_bindings> bindings{};           // in the order of Kernel::bindings
  std::uint8_t constant_count = 0;
  std::uint8_t binding_count = 0;
  /// Bindings the specialised kernel really touches; the others only have to be something valid.
  std::uint8_t used = 0;
  /// Of those, the ones whose old contents it does not read, though its kernel could.
  std::uint8_t overwritten = 0;
  std::uint8_t push_bytes = 0;
  /// Scheduled as late as its consumers allow: its result is large, and would only take up memory.
  bool late = false;
  /// Which of Access it goes by. Of the kernel's own, unless the op knows better.
  Family family = Family::reductions;
  /// Workgroups are numbered linearly, so that any grid with as many of them will do.
  bool folded = false;
  /// Rows of its grid are in different submits.
  bool in_parts = false;
  alignas(4) std::array<std::byte, max_push_bytes> push{};

  Dispatch(kernels::Ref of, std::uint32_t for_group);

  /// By the names kernelgen gives: `set(kernels::reduce::group_size, 256)`.
  template <class Constant>
  requires std::is_enum_v<Constant>
  void set(Constant id, std::uint32_t value) { constants[constant_index(static_cast<std::uint32_t>(id))] = value; }
  template <class Constant>
  requires std::is_enum_v<Constant> std::uint32_t get(Constant id)
  const { return constants[constant_index(static_cast<std::uint32_t>(id))]; }
  template <class Binding>
  requires std::is_enum_v<Binding>
  void bind(Binding binding, const Region& region) { bind_region(static_cast<std::uint32_t>(binding), region); }
  template <class Params>
  void params(const Params& block) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= max_push_bytes);
    assert(sizeof(Params) == push_bytes);
    std::memcpy(push.data(), &block, sizeof(Params));
  }
  template <class Binding>
  requires std::is_enum_v<Binding>
  void overwrites(Binding binding, bool yes) { set_overwritten(static_cast<std::uint32_t>(binding), yes); }
  /// By their position in Kernel::bindings. A kernel is told which of them hold f16.
  void bind_at(std::size_t index, const Region& region);
  /// Gives unused bindings a used region, so that every descriptor is valid.
  void close();

  bool reads(std::size_t binding) const noexcept;
  bool writes(std::size_t binding) const noexcept;

 private:
  std::size_t constant_index(std::uint32_t id) const;
  std::size_t binding_index(std::uint32_t binding) const;
  void bind_region(std::uint32_t binding, const Region& region);
  void set_overwritten(std::uint32_t binding, bool yes);
};

enum class HazardKind : std::uint8_t { read_after_write, write_after_read, write_after_write };
const char* to_string(HazardKind kind) noexcept;  // "RAW"

/// Dispatch `to` must see what `from` did, or must not disturb it.
struct Hazard {
  HazardKind kind;
  std::uint32_t from;
  std::uint32_t to;
  Region region;  // the bytes they share
};

/// Stands before dispatch `before`: everything earlier has finished and is visible to everything later.
struct Barrier {
  std::uint32_t before;
  std::vector<Hazard> causes;  // those between this gap and the one before
};

struct Placement {
  record::ValueId value;
  std::uint64_t offset;  // in the arena
  std::uint64_t bytes;
};

/// Dispatches, and which rows (workgroups of one y) of the first and the last one: a long dispatch may have begun in an
/// earlier range, or go on in a later one.
struct DispatchRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t begin_row = 0;  // of dispatch `begin`
  std::uint32_t end_row = 0;    // of dispatch `end - 1`; 0: all of it
};

struct Plan {
  std::vector<Group> groups;
  std::vector<ElementwiseProgram> prologues;
  std::vector<Home> homes;  // by ascending value
  std::vector<Dispatch> dispatches;
  std::vector<Barrier> barriers;
  /// One command buffer and one submit each; more than one only where a bound asks for it.
  std::vector<DispatchRange> submits;
  Cost cost;  // of a run
  /// Long enough, against the bound, that timing it says something of the device's speed.
  bool worth_timing = false;

  /// The arena: uploads nobody reads back, then uploads that are read back, then results, then
  /// temporaries; so the upload is one range and the read-back is one range.
  std::uint64_t arena_bytes = 0;
  std::uint64_t arena_bytes_without_reuse = 0;
  std::uint64_t upload_bytes = 0;    // [0, upload_bytes)
  std::uint64_t readback_begin = 0;  // [readback_begin, readback_end)
  std::uint64_t readback_end = 0;
  std::vector<Placement> uploads;      // in the order of Graph::uploads
  std::vector<Placement> readable;     // uploads and results that can be read
  std::uint64_t element_bytes_up = 0;  // without alignment gaps
  std::uint64_t element_bytes_down = 0;

  std::uint64_t dropped_operations = 0;
  std::uint64_t fused_operations = 0;
  /// The measurements in Traits::tuning that chose a kernel here.
  std::vector<const TunedMatmul*> tuned;

  bool writes(record::ResourceId resource) const noexcept;
  std::uint64_t readback_bytes() const noexcept { return readback_end - readback_begin; }
};

struct PlanOptions {
  // As in BatchOptions.
  bool keep_all = false;
  bool keep_marked_only = false;
  bool fuse = true;
  bool reuse_memory = true;
  std::uint64_t work_per_submit = 0;
  double seconds_per_submit = 0;  // 0: no bound
  bool batch_invariant = false;
  /// Which fused programs are allowed; null for any.
  ProgramSet* programs = nullptr;
  bool only_ask = false;  // the plan will not be run: it takes no room in `programs`
};

/// Plans what is pending in the graph.
Result<Plan> make_plan(const record::Graph& graph, const Traits& traits, const PlanOptions& options = {});

/// The plan as text; tests compare it, people read it.
std::string dump(const Plan& plan, const record::Graph& graph, DumpFormat format = DumpFormat::text);

// The passes, each a file of its own.

/// Orders dispatches by levels and finds the barriers. A level holds every dispatch whose hazards are
/// all towards lower levels, so there are as few barriers as the longest chain of hazards allows.
void order(std::vector<Dispatch>& dispatches, std::vector<Barrier>& barriers);

/// What a dispatch asks of the device. Every binding counts once.
Cost cost_of(const Dispatch& dispatch) noexcept;
/// How much of what a submit may hold a dispatch takes up; 0 without a bound.
double share_of_submit(const Dispatch& dispatch, const Speed& speed, const PlanOptions& options) noexcept;
/// Cuts ordered dispatches into submits that hold no more than they may, but for single rows of a grid and single
/// kernels of users. Folds the grids of those that are too long into rows that are not.
std::vector<DispatchRange> split(std::vector<Dispatch>& dispatches, const Traits& traits, const PlanOptions& options);

/// Folds a linear count of workgroups over three axes. The product may exceed `groups`: kernels
/// return early past their count. Errc::limit_exceeded when no folding is enough.
Result<std::array<std::uint32_t, 3>> fold(std::uint64_t groups, const Traits& traits);

/// Reserves temporary arena memory while lowering.
class Arena {
 public:
  explicit Arena(std::uint32_t alignment) : alignment_(alignment) {}
  /// An aligned range; sizes are rounded up so that vec4 access to the last element stays inside.
  Region reserve(std::uint64_t bytes, bool half = false);
  std::uint64_t end() const noexcept { return end_; }
  const std::vector<Region>& reservations() const noexcept { return reservations_; }

 private:
  std::uint64_t alignment_;
  std::uint64_t end_ = 0;
  std::vector<Region> reservations_;
};

/// Gives temporaries whose lives do not meet the same memory, and the result of an elementwise dispatch
/// that of an operand which dies there. `temporaries` are disjoint, ascending, and reach to the end of
/// the arena; dispatches are ordered. The end of the arena afterwards.
std::uint64_t reuse_memory(std::vector<Dispatch>& dispatches, Span<const Region> temporaries, std::uint32_t alignment);

/// Where a lowering finds its operands and puts its dispatches.
struct Lowering {
  const record::Graph& graph;
  const Traits& traits;
  const PlanOptions& options;
  const Grouping& grouping;
  const std::vector<Region>& regions;  // by value
  Arena& arena;
  std::vector<Dispatch>& dispatches;
  std::vector<const TunedMatmul*>& tuned;

  const Region& region(record::ValueId value) const { return regions[value]; }
  /// Whether operand k of a node that moves its operands (Op::moves) is written where it goes.
  bool is_there(const record::Node& mover, std::size_t k) const;
  const record::Node& root(std::uint32_t group) const { return graph.nodes()[grouping.groups[group].root]; }
  /// Where the group's only result goes, that of its epilogue if it has one.
  const Region& result(std::uint32_t group) const { return regions[Grouping::result(grouping.groups[group], graph)]; }
  /// Adds a dispatch of this many workgroups, once it is known how it reaches its memory.
  Error emit(const Dispatch& dispatch, std::uint64_t groups);
  /// The same with a grid that is not to be folded.
  void emit_grid(const Dispatch& dispatch, const std::array<std::uint32_t, 3>& groups);
};

Error lower_elementwise(Lowering& to, std::uint32_t group);
Error lower_copy(Lowering& to, std::uint32_t group, const Region& from, const Region& into, std::uint64_t count);
Error lower_fill(Lowering& to, std::uint32_t group, float value, const Region& into, std::uint64_t count);
/// Workgroups of lower_fill().
std::uint64_t fill_groups(std::uint64_t count, const Traits& traits);

/// Makes the group's program the epilogue of a dispatch of its root. Bindings and constants have the
/// same numbers in every kernel that has an epilogue.
void set_epilogue(const Lowering& to, std::uint32_t group, Dispatch& dispatch, kernels::EpilogueParams& params);

/// Binds the first operand of the group's root to a dispatch that loads it, or what its prologue makes it of. Bindings
/// and constants have the same numbers in every kernel that has a prologue.
void bind_operand(const Lowering& to, std::uint32_t group, Dispatch& dispatch, kernels::PrologueParams& params);

}  // namespace brontes::plan
