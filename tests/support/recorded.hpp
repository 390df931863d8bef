// What a recording means: its ops run one after another, in the order of recording.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "support/symbols.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace brontes::test {

/// Memory by resource, the arena among them, in cells of two bytes: an f16 has one, any other element two. What nobody
/// wrote is garbage in the arena, and whatever was there before in a buffer.
class Memory {
 public:
  /// The elements of a region, of the size that it says.
  std::vector<Symbol> read(const plan::Region& region);
  void write(const plan::Region& region, const std::vector<Symbol>& elements);
  /// One of them.
  Symbol get(const plan::Region& region, std::uint64_t element);
  void set(const plan::Region& region, std::uint64_t element, Symbol symbol);

  /// So many cells of a resource at least.
  std::vector<Symbol>& cells(record::ResourceId resource, std::uint64_t count);
  const std::map<record::ResourceId, std::vector<Symbol>>& all() const { return memory_; }

 private:
  std::map<record::ResourceId, std::vector<Symbol>> memory_;
};

/// Where a value lies that has its place in a resource.
plan::Region region_of(const record::Value& value);

struct Recorded {
  /// By value: its elements when it was made; for imports, before everything that is pending.
  std::vector<std::vector<Symbol>> values;
  /// By pending node: the contents of its operands when it ran.
  std::map<std::uint32_t, std::vector<std::uint64_t>> operands;
  /// By pending node that only moves elements: those of its operands when it ran.
  std::map<std::uint32_t, std::vector<std::vector<Symbol>>> moved;
  Memory buffers;  // at the end

  /// "%3[7]", if the symbol is an element of a value.
  std::string name(Symbol symbol) const;
};

/// By element of operand k: the element of its result or destination to which a node that only moves elements moves it.
std::vector<std::size_t> destinations(const record::Graph& graph, const record::Node& mover, std::size_t k);

Recorded run_recording(const record::Graph& graph);

/// Values that must be readable after what is pending has run.
bool must_be_readable(const record::Graph& graph, record::ValueId value, const plan::PlanOptions& options);

/// By node: it has an effect, because it leads to something that can be read, or to a store.
std::vector<bool> find_needed(const record::Graph& graph, const plan::PlanOptions& options);

}  // namespace brontes::test
