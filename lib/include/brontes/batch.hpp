// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/matmul.hpp>
#include <brontes/program.hpp>
#include <brontes/stats.hpp>
#include <brontes/tensor.hpp>
#include <brontes/weight.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace brontes {

struct BatchOptions {
  /// Every value can be read after execution, consumed or not. For debugging: it costs memory and
  /// time.
  bool keep_all = false;
  /// Only what is marked with keep() can be read; ops that lead neither there nor to a store() do not
  /// run.
  bool keep_marked_only = false;
  /// Chains of elementwise ops run as one dispatch, and as part of the matmul or reduction they follow.
  bool fuse = true;
  /// Temporaries share memory.
  bool reuse_memory = true;
  /// Splits a run over several submits, in order, so that none does more than about this many
  /// multiply-adds or elements. For drivers that kill long submits. 0: one submit.
  std::uint64_t work_per_submit = 0;
  /// Forces one kernel for every matmul that does not choose its own.
  MatmulKernel matmul = MatmulKernel::automatic;
  /// Row i of a product has the same bits whatever the number of rows: nothing about a matmul that is not
  /// forced depends on M. On GPUs it costs speed where M is small.
  bool batch_invariant = false;
};

/// Records tensor ops, runs them in one command buffer with one submit, and hands back results.
///
///     brontes::Batch batch(device);
///     auto x   = batch.upload({1.f, 2.f, -3.f, 4.f});
///     auto b   = batch.upload({.5f, .5f, .5f, .5f});
///     auto out = batch.add(batch.scale(batch.relu(x), 2.f), b);
///     if (brontes::Error e = batch.execute()) return fail(e);
///     std::vector<float> y = batch.read(out).value();   // 2.5 4.5 0.5 8.5
///
/// **Errors stick.** An op on a bad tensor or with sizes that do not fit is not recorded: it returns
/// an invalid Tensor, and the FIRST such error is what execute() reports, so calls chain freely.
/// Everything recorded before and after stays. clear_error() takes the error off; record the right
/// op and execute.
///
/// **What can be read** after execute(): every value that no other op consumed, and every value
/// marked with keep() before. Anything else may not exist any more (Errc::not_kept).
///
/// **Going on.** After execute(), further ops may be recorded on readable values, uploads and
/// imports; the next execute() uploads and runs only what is new. With nothing new it does nothing.
///
/// **Shapes.** Flat data is 1-D. Elementwise ops on two tensors broadcast as in numpy, aligned at the
/// last dim, where the smaller operand repeats as a whole or along one block of dims: a row vector
/// {cols}, a column {rows, 1}, a scalar {1} against {rows, cols}, and so on up to four dims.
/// Shapes with a zero extent are fine everywhere except in the max and min reductions.
///
/// **Numbers.** f32, f32 accumulation. NaN propagates through every op, relu, min, max and clamp
/// included. Denormals may be flushed to zero by the device. The tolerance of each op against double
/// precision is in docs/architecture.md and checked by the tests on every driver.
///
/// Thread-safety: a Batch belongs to one thread at a time. Different batches of one Device may be
/// used by different threads at once.
class BRONTES_API Batch {
 public:
  explicit Batch(const Device& device, const BatchOptions& options = {});
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  // --- Inputs -----------------------------------------------------------------------------------

  /// Copies host data into the batch; it may be changed as soon as the call returns. Without a shape
  /// the tensor is 1-D. Errors: null_data; shape_mismatch when data and shape differ in size;
  /// empty_input when there is neither data nor a shape (an empty tensor needs one, such as {0}).
  Tensor upload(Span<const float> data);
  Tensor upload(Span<const float> data, Shape shape);
  Tensor upload(std::initializer_list<float> data);
  Tensor upload(std::initializer_list<float> data, Shape shape);

  /// Uses a resident buffer of the same device, without any transfer. The tensor is a window on the
  /// buffer: an op recorded after a store() to it reads what was stored. The batch keeps the memory
  /// alive until it is reset or destroyed.
  Tensor import_buffer(const Buffer& buffer);

  /// A resident weight W[N, K], in whatever type it is stored, as the second operand of linear() or of
  /// matmul() with Layout::nk. Nothing else takes it, and it cannot be read.
  Tensor import_weight(const Weight& weight);

  /// A tensor with every element set to `value`.
  Tensor fill(float value, Shape shape);

  // --- One operand, any shape; the result has the same ----------------------------------------------

  Tensor relu(Tensor x);                  ///< x < 0 ? 0 : x
  Tensor scale(Tensor x, float factor);   ///< x * factor
  Tensor offset(Tensor x, float amount);  ///< x + amount
  Tensor neg(Tensor x);                   ///< -x
  Tensor abs(Tensor x);                   ///< |x|
  Tensor exp(Tensor x);                   ///< e^x; +Inf past 88.7
  Tensor log(Tensor x);                   ///< natural logarithm; -Inf at 0, NaN below
  Tensor sqrt(Tensor x);                  ///< NaN below 0
  Tensor sigmoid(Tensor x);               ///< 1 / (1 + e^-x)
  Tensor tanh(Tensor x);
  Tensor swish(Tensor x);                         ///< x * sigmoid(x), also called SiLU; 0 at -Inf
  Tensor gelu(Tensor x);                          ///< x/2 * (1 + erf(x / sqrt 2)), the exact form; 0 at -Inf
  Tensor gelu_tanh(Tensor x);                     ///< the tanh approximation of gelu; 0 at -Inf
  Tensor clamp(Tensor x, float low, float high);  ///< invalid_argument unless low <= high
  Tensor copy(Tensor x);                          ///< the same elements in memory of their own

  // --- Two operands, broadcast ----------------------------------------------------------------------

  Tensor add(Tensor x, Tensor y);
  Tensor sub(Tensor x, Tensor y);
  Tensor mul(Tensor x, Tensor y);
  Tensor div(Tensor x, Tensor y);
  Tensor min(Tensor x, Tensor y);
  Tensor max(Tensor x, Tensor y);

  // --- Reductions over all elements; the result has shape {1} --------------------------------------

  Tensor sum(Tensor x);            ///< 0 for no elements
  Tensor dot(Tensor x, Tensor y);  ///< sum of products; the sizes must agree, the shapes need not
  Tensor max(Tensor x);            ///< NaN if any element is; empty_input for no elements
  Tensor min(Tensor x);            ///< NaN if any element is; empty_input for no elements

  // --- Matrix product -------------------------------------------------------------------------------

  /// [M, K] x [K, N] -> [M, N], sizes from the shapes; a 1-D operand is a row (left) or a column
  /// (right). With Layout::nk the second operand is [N, K] and is used transposed.
  Tensor matmul(Tensor a, Tensor b, const MatmulOptions& options = {});

  /// The same on flat data: a holds m*k elements, b holds k*n, whatever their shapes.
  Tensor matmul(Tensor a, Tensor b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                const MatmulOptions& options = {});

  /// x W^T + bias: x[M, K], w[N, K], bias[N]. Without a bias it is matmul with Layout::nk.
  Tensor linear(Tensor x, Tensor w);
  Tensor linear(Tensor x, Tensor w, Tensor bias);

  // --- Outputs --------------------------------------------------------------------------------------

  /// Copies x into a resident buffer of the same size when the batch runs.
  void store(Tensor x, const Buffer& destination);

  /// Makes x readable after execute() even when other ops consume it. Returns x.
  Tensor keep(Tensor x);

  // --- Running --------------------------------------------------------------------------------------

  /// Plans and encodes what was recorded since the last execute(), submits it once and waits.
  /// Reports the first recording error, if there is one, and then runs nothing. After a failure to plan,
  /// encode or submit the batch is as it was before the call. When only the wait fails (the device is
  /// lost, the host out of memory) the work is under way, and read() waits for it again.
  Error execute();

  /// execute() without the wait: read() waits, and so does Submission::wait().
  Result<Submission> submit();

  /// What execute() would run, planned and encoded for many runs. The batch stays as it is; values of
  /// earlier executions are inputs of the program with the contents they have.
  Result<Program> compile();

  /// The elements of a readable value. Errors: not_executed, not_kept, and those of bad handles.
  Result<std::vector<float>> read(Tensor x) const;
  /// The same into memory of yours. Errc::shape_mismatch unless out.size() == x.size().
  Error read(Tensor x, Span<float> out) const;

  /// Forgets everything recorded and every result; tensors of before become stale. The next
  /// execute() starts over. Errors are cleared, counts start at zero. Keeps the memory of the largest
  /// execution, and up to 64 MiB for uploads, so that recording and executing the like of it again allocates
  /// little; a new Batch has none of it.
  void reset();

  // --- Looking --------------------------------------------------------------------------------------

  /// The first recording error, if any. It stays until clear_error() or reset().
  const Error& error() const noexcept;
  /// Takes the error off and returns it. What was recorded stays.
  Error clear_error() noexcept;

  std::size_t num_operations() const noexcept;  ///< ops recorded since the batch was made or reset
  std::size_t num_buffers() const noexcept;     ///< values: uploads, imports and results
  BatchStats stats() const noexcept;

  /// What execute() would run now. With DumpStage::recorded, what was recorded since the last execute(),
  /// before anything is dropped, fused or placed: that never fails, and leaves out ops that were refused.
  Result<std::string> dump(DumpFormat format = DumpFormat::text, DumpStage stage = DumpStage::planned) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace brontes
