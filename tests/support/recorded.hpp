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

/// Words of memory by resource, the arena among them. What nobody wrote is garbage in the arena, and
/// whatever was there before in a buffer.
class Memory {
 public:
  /// The words of a region; they may be written. The pointer is valid until the next call.
  Symbol* at(const plan::Region& region);
  const std::map<record::ResourceId, std::vector<Symbol>>& all() const { return memory_; }

 private:
  std::map<record::ResourceId, std::vector<Symbol>> memory_;
};

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
