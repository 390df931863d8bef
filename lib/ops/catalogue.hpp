// The ops that have kernels of their own, and how they appear on a Batch.
#pragma once

#include "record/op.hpp"

#include <brontes/batch.hpp>

#include <initializer_list>
#include <vector>

namespace brontes {

namespace ops {

/// What a file of this folder offers: `const Room NAME_room`.
using Room = Span<const record::Op>;

#define BRONTES_ROOM(name, ...) extern const Room name##_room;
#include "ops/ops.def"
#undef BRONTES_ROOM

struct NamedRoom {
  const char* name;
  Room ops;
};
/// All rooms, in the order of the list.
std::vector<NamedRoom> catalogue();

}  // namespace ops

/// Records ops on a batch. An op's methods of Batch are defined with it, beside the op.
struct OpAccess {
  static Tensor record(Batch& batch, const record::Op& op, std::initializer_list<Tensor> operands,
                       const record::Attributes& attributes = {});
  static Tensor record(Batch& batch, const record::Op& op, Span<const Tensor> operands,
                       const record::Attributes& attributes = {});
  /// For ops with several results: none of them if the op was refused.
  static std::vector<Tensor> record_all(Batch& batch, const record::Op& op, Span<const Tensor> operands,
                                        const record::Attributes& attributes = {});
  /// A batch without a device: it records, and cannot execute. For plans that nobody runs.
  static Batch detached();
  /// What is recorded so far. Null for a batch without a state.
  static record::Graph* graph(Batch& batch) noexcept;
  /// The handle of a value of that graph.
  static Tensor tensor(Batch& batch, record::ValueId value) noexcept;
};

}  // namespace brontes
