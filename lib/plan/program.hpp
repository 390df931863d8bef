// Elementwise programs, and the groups of ops that share a dispatch. Plain data; fuse.hpp makes them.
#pragma once

#include "plan/params.hpp"
#include "record/elementwise.hpp"
#include "record/graph.hpp"
#include "record/shape.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace brontes::plan {

inline constexpr std::uint32_t no_node = ~std::uint32_t{0};

/// An elementwise program: what the specialization constants of the kernels spell.
struct ElementwiseProgram {
  struct Input {
    record::ValueId value;
    record::Repeat repeat;  // unless it is strided
    /// Where record::operand_access() says how it is indexed, if no Repeat does: node and operand.
    std::uint32_t strided = no_node;
    std::uint8_t operand = 0;
  };
  struct Step {
    record::ElementwiseOp op;
    /// Registers: 0 .. 3 inputs, 4 + s the result of step s. As many as the op takes operands.
    std::array<std::uint8_t, record::elementwise_max_arity> operands;
    float p, q;
    std::uint32_t node;
    record::ValueId result;
  };
  std::array<Input, elementwise_max_inputs> inputs;
  std::array<Step, elementwise_max_steps> steps;
  std::uint8_t input_count = 0;
  std::uint8_t step_count = 0;
  bool strided = false;  // some input is

  std::uint32_t word(std::size_t step) const {
    const auto& r = steps[step].operands;
    return elementwise_step(static_cast<std::uint32_t>(steps[step].op), r[0], r[1], r[2]);
  }
};

/// How the kernel indexes an input that repeats like this over `count` elements.
ElementwiseMode mode_of(const record::Repeat& repeat, std::uint64_t count);

/// How an input of a program over `count` elements is indexed, whatever it is.
record::Access access_of(const record::Graph& graph, const ElementwiseProgram::Input& input, std::uint64_t count);
/// What the kernel for strided inputs is told of that.
StridedMode mode_of(const record::Access& access);

inline constexpr std::uint32_t no_prologue = ~std::uint32_t{0};

struct Group {
  std::uint32_t root = no_node;          // an op with a kernel of its own; none for a group of elementwise ops
  std::uint32_t first = 0;               // its root, or its first node
  std::uint32_t level = 0;               // above the levels of all it depends on
  std::uint64_t count = 0;               // elements of every step's result
  bool has_dependents = false;           // another group comes after it for a reason: its level is fixed
  bool dropped = false;                  // merged into another, or not needed
  std::uint32_t merged_into = 0;         // if so
  std::uint8_t written = 0;              // bit s: the result of step s leaves the group
  std::uint32_t prologue = no_prologue;  // of its root: an index into the prologues
  /// Elementwise steps; behind a root they are its epilogue, where register 0 is the root's result.
  ElementwiseProgram program;
};

/// A fused program as pipelines see it: what makes theirs differ.
class ProgramKey {
 public:
  void add(std::uint32_t word) noexcept {
    assert(size_ < words_.size());
    words_[size_++] = word;
  }
  friend bool operator==(const ProgramKey&, const ProgramKey&) = default;

  struct Hash {
    std::size_t operator()(const ProgramKey& key) const noexcept;
  };

 private:
  // The root, its program and its prologue, and what keeps the two apart.
  static constexpr std::size_t most =
      2 + elementwise_max_steps + elementwise_max_inputs + 1 + prologue_max_steps + prologue_max_inputs;
  std::array<std::uint32_t, most> words_{};
  std::uint32_t size_ = 0;
};

/// The distinct fused programs a device has met, at most `limit` of them: each costs pipelines. What is
/// not admitted runs as single ops, whose number is that of the table.
///
/// Thread-safety: any thread.
class ProgramSet {
 public:
  explicit ProgramSet(std::size_t limit = ~std::size_t{0}) : limit_(limit) {}

  /// True when the program is known, or there was room for it, which it then takes unless `only_ask`.
  bool admit(const ProgramKey& program, bool only_ask);

 private:
  std::size_t limit_;
  std::mutex mutex_;
  std::unordered_set<ProgramKey, ProgramKey::Hash> known_;
};

/// Where a value lies that has no memory of its own: inside another value, or inside a resource.
struct Home {
  record::ValueId of;
  record::ValueId in;           // that value, or no_value
  record::ResourceId resource;  // then that resource, else no_resource
  std::uint64_t offset;         // bytes, from the beginning of either

  /// That of a value, or null.
  static const Home* find(const std::vector<Home>& homes, record::ValueId value) {
    const auto at = std::lower_bound(homes.begin(), homes.end(), value,
                                     [](const Home& home, record::ValueId id) { return home.of < id; });
    return at != homes.end() && at->of == value ? &*at : nullptr;
  }
};

struct Grouping {
  std::vector<Group> groups;  // in an order that respects every dependency
  std::vector<ElementwiseProgram> prologues;
  std::vector<std::uint8_t> written;  // by value: somebody outside its group needs it
  std::vector<std::uint8_t> wanted;   // by value that is no view: it can be read, or a view of it can
  std::vector<Home> homes;            // by ascending value
  std::uint64_t dropped_operations = 0;
  std::uint64_t fused_operations = 0;

  /// The value a root ends in: its own, or that of its epilogue.
  static record::ValueId result(const Group& group, const record::Graph& graph) {
    const ElementwiseProgram& p = group.program;
    return p.step_count != 0 ? p.steps[p.step_count - 1].result : graph.nodes()[group.root].output;
  }
};

}  // namespace brontes::plan
