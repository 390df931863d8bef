// The cases of ops with kernels of their own: how an op is called, what it must give, and how closely. One file per
// room of lib/ops.
//
// From a case come its tests on every driver (tests/device/ops.cpp: random and special values, memory around operands
// and results), its place in random graphs and hazard proofs (tests/support), its benchmark and its row in
// kernel-report. A case uses the public API only.
#pragma once

#include "reference.hpp"

#include <brontes/batch.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace brontes::cases {

struct Operand {
  Shape shape;
  float low = -2, high = 2;  // random elements come from [low, high]
  DType type = DType::f32;   // its data are floats all the same: whole numbers for i32, 0 and 1 for masks, and for f16
                             // such as it has
};

/// What must come out: lib/reference has what ops give.
using reference::Expected;

/// Elements of the operands, in order.
using Data = std::vector<std::vector<float>>;
inline reference::Values doubles(Span<const float> x) { return {x.begin(), x.end()}; }

struct OpCase {
  std::string name;  // "reduce/sum/100x7": the room first
  std::vector<Operand> operands;
  std::function<Tensor(Batch&, const std::vector<Tensor>&)> record;
  /// In double precision.
  std::function<Expected(const Data&)> reference;
  /// NaN, infinities and the like among the elements are part of the contract.
  bool special_values = true;
};

/// What a benchmark of the op does.
struct OpBenchmark {
  OpCase op;
  double bytes = 0;  // read and written, at least
  double flops = 0;
};

struct CaseRoom {
  std::vector<OpCase> (*cases)();  // every shape and attribute worth a test: tails, ones, zeros, past one workgroup
  std::vector<OpBenchmark> (*benchmarks)() = nullptr;
};

#define BRONTES_ROOM(name, ...) extern const CaseRoom name##_cases;
#include "ops/ops.def"
#undef BRONTES_ROOM

struct NamedCaseRoom {
  const char* name;
  CaseRoom room;
};
/// All rooms, in the order of the list.
std::vector<NamedCaseRoom> op_cases();

/// Random elements for every operand.
Data random_data(const OpCase& c, std::uint64_t seed);
/// The same with special values strewn in; i32 and masks stay as they are.
Data special_data(const OpCase& c, std::uint64_t seed);

/// Empty when the elements are as expected; else where the first is not.
std::string mismatch(Span<const float> got, const Expected& want);
std::string mismatch(Span<const std::int32_t> got, const Expected& want);
/// The same for a result that can be read, of any type.
std::string mismatch(const Batch& batch, Tensor result, const Expected& want);

/// The same with f16 for every operand that is f32.
OpCase with_halves(OpCase c);
/// The same with a result that is cast to f16, of an op that gives f32.
OpCase with_half_result(OpCase c);

/// "3x4x5", for names.
std::string dims(const Shape& shape);

}  // namespace brontes::cases
