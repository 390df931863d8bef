// What the formats of a plan's dump have in common: the words for groups, results and hazards.
#pragma once

#include "plan/plan.hpp"
#include "record/words.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::plan {

class Words {
 public:
  Words(const Plan& plan, const record::Graph& graph);

 protected:
  /// "plan: 3 ops, 1 dispatches, 0 barriers, arena 768 bytes"
  std::string summary() const;

  const Group& group(const Dispatch& d) const { return plan_.groups[d.group]; }
  /// The dispatches of the group of `d`, in order; more than one for a long reduction or a split matmul.
  const std::vector<std::uint32_t>& parts(const Dispatch& d) const { return parts_[d.group]; }

  /// Nodes of a group in the order they are computed.
  std::vector<std::uint32_t> nodes(const Group& g) const;
  const record::Node& node(std::uint32_t index) const { return graph_.nodes()[index]; }
  /// Nodes that do not run, because nothing can read what they make.
  std::vector<std::uint32_t> dropped() const;
  /// Other values lie in it.
  bool is_home(record::ValueId value) const;

  std::vector<record::ValueId> inputs(const Group& g) const;
  /// Values that leave the group, the last result last.
  std::vector<record::ValueId> outputs(const Group& g) const;

  /// What a dispatch writes and where. No value for partial results and for a store.
  struct Result {
    record::ValueId value;
    Region region;
  };
  std::vector<Result> results(std::uint32_t dispatch) const;

  /// "%3", and what it lies in if that is not its own: "%3 in %7 at 4096", "%3 in buffer 0"
  std::string with_home(record::ValueId value) const;

  /// What a hazard is about: a value, the partial results of one op, a buffer, or memory changing hands.
  std::string subject(const Hazard& h) const;
  static std::string grid(const Dispatch& d);

  const Plan& plan_;
  const record::Graph& graph_;

 private:
  std::vector<std::vector<std::uint32_t>> parts_;  // by group
};

std::string dump_dot(const Plan& plan, const record::Graph& graph);

}  // namespace brontes::plan
