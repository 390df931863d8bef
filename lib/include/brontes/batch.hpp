// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/kernel.hpp>
#include <brontes/matmul.hpp>
#include <brontes/program.hpp>
#include <brontes/stats.hpp>
#include <brontes/tensor.hpp>
#include <brontes/weight.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
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
  /// A run that is estimated to take longer than this many milliseconds on the device goes to the queue in several
  /// command buffers, in order, so that no watchdog of a driver ends it. A single long op is split too, between rows of
  /// its workgroups; only one workgroup, or a kernel of your own, stays whole. Results have the same bits. The parts go
  /// in one vkQueueSubmit, so that all of them run or none does.
  ///
  /// The estimate begins with what a slow GPU does, and gets better with every longer run that is waited for. A Program
  /// is split as it seems right when it is compiled. vulkan::record() cannot split.
  ///
  /// 0: 250 on GPUs, and no bound with CPU drivers, which have no watchdog.
  std::uint32_t milliseconds_per_submit = 0;
  /// For milliseconds_per_submit: one command buffer, however long it takes.
  static constexpr std::uint32_t unlimited = ~std::uint32_t{0};
  /// The same by count: no command buffer has more than this many multiply-adds or elements. 0: no such bound.
  std::uint64_t work_per_submit = 0;
  /// Forces one kernel for every matmul that does not choose its own.
  MatmulKernel matmul = MatmulKernel::automatic;
  /// Row i of a product has the same bits whatever the number of rows: kernel, tiles and split-K of a
  /// matmul do not depend on M, unless the kernel is forced. On GPUs this is slower for small M.
  bool batch_invariant = false;
  /// For every matmul that does not say its own.
  Precision precision = Precision::automatic;
};

/// A set of a tensor's dims: `0`, `{0, 2}`, `-1` for the last. None given means all of them.
///
/// Thread-safety: a plain value.
class Axes {
 public:
  static constexpr std::size_t max_size = 8;

  /// All dims.
  constexpr Axes() noexcept = default;
  template <class... Dims,
            class = std::enable_if_t<(sizeof...(Dims) > 0) && (std::is_integral_v<std::decay_t<Dims>> && ...)>>
  constexpr Axes(Dims... dims) noexcept {  // NOLINT: implicit, so that sum(x, {0, 2}) works
    (push(static_cast<std::int64_t>(dims)), ...);
  }
  constexpr Axes(Span<const std::int64_t> dims) noexcept {  // NOLINT: implicit by design
    for (const std::int64_t dim : dims) push(dim);
  }

  /// As many as were given, even if more than max_size, which no op accepts.
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr std::int64_t operator[](std::size_t index) const noexcept { return dims_[index]; }

 private:
  constexpr void push(std::int64_t dim) noexcept {
    if (size_ < max_size) dims_[size_] = dim;
    ++size_;
  }

  std::array<std::int64_t, max_size> dims_{};
  std::size_t size_ = 0;
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
/// Everything recorded before and after stays. clear_error() clears the error; record the right
/// op and execute.
///
/// **What can be read** after execute(): every value that no other op consumed, and every value
/// marked with keep() before. Anything else may not exist any more (Errc::not_kept).
///
/// **Incremental execution.** After execute(), further ops may be recorded on readable values, uploads and
/// imports; the next execute() uploads and runs only what is new, if anything.
///
/// **Shapes.** Flat data is 1-D. Elementwise ops on several tensors broadcast as in numpy, aligned at the
/// last dim: a row vector {cols}, a column {rows, 1}, a scalar {1} against {rows, cols}, and so on up to eight dims.
/// Shapes with a zero extent are fine everywhere except in the max and min reductions.
///
/// **Types.** Tensors are f32, f16, i32 or masks (Tensor::dtype()). Ops take f32 unless they say otherwise; an operand
/// of a wrong type is Errc::type_mismatch. f16 is a way to store f32 in half the bytes: wherever an op takes f32, f16
/// will do. It is widened as it is loaded, which is exact, and arithmetic is f32. Whatever computes gives f32, also
/// from f16 alone, so that nothing is rounded on the way; cast() says what is to be stored as f16. Ops that only move
/// elements (copy(), views, concat(), gather(), update_rows(), where()) keep the type. Other types change by cast()
/// only.
///
///     auto h = batch.cast(batch.gelu(batch.linear(x, w)), DType::f16);  // one dispatch, which writes f16
///
/// **Numbers.** f32, f32 accumulation. NaN propagates through every op, relu, min, max and clamp
/// included. Denormals may be flushed to zero by the device. The tolerance of each op against double
/// precision is in docs/architecture.md and checked by the tests on every driver.
///
/// **Out of memory.** A Batch that the host had no memory for records nothing, like one that was moved from: every
/// call returns an error.
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
  Tensor upload(Span<const std::int32_t> data);
  Tensor upload(Span<const std::int32_t> data, Shape shape);
  Tensor upload_i32(std::initializer_list<std::int32_t> data);
  Tensor upload_i32(std::initializer_list<std::int32_t> data, Shape shape);
  /// f16: the nearest to `data`, ties to even, with infinity from 65520 on; or `data` itself, the bits of f16.
  Tensor upload_f16(Span<const float> data, Shape shape = {});
  Tensor upload_f16(Span<const std::uint16_t> data, Shape shape = {});
  Tensor upload_f16(std::initializer_list<float> data, Shape shape = {});

  /// Uses a resident buffer of the same device, without any transfer. The tensor is a window on the
  /// buffer, of its type: an op recorded after a store() to it reads what was stored. The batch keeps the memory
  /// alive until it is reset or destroyed.
  Tensor import_buffer(const Buffer& buffer);

  /// A slice of a resident buffer: slice(import_buffer(buffer), ranges) in one call, with its ranges and errors.
  /// Elementwise ops read it where it lies. The elements are those that the buffer has at this point of the recording:
  /// a store() recorded later does not change the slice. Program::rebind() takes the tensor of the whole buffer.
  Tensor import_buffer(const Buffer& buffer, Span<const Range> ranges);
  Tensor import_buffer(const Buffer& buffer, std::initializer_list<Range> ranges);

  /// A resident weight W[N, K], stored in any type, as the second operand of linear() or of matmul() with
  /// Layout::nk. No other op accepts it, and it cannot be read.
  Tensor import_weight(const Weight& weight);

  /// A tensor with every element set to `value`.
  Tensor fill(float value, Shape shape);
  Tensor fill_i32(std::int32_t value, Shape shape);

  // --- One operand of any shape; the result has its shape -------------------------------------------

  Tensor relu(Tensor x);                  ///< x < 0 ? 0 : x
  Tensor scale(Tensor x, float factor);   ///< x * factor
  Tensor offset(Tensor x, float amount);  ///< x + amount
  Tensor neg(Tensor x);                   ///< -x; also of i32
  Tensor abs(Tensor x);                   ///< |x|; also of i32, where the lowest number stays as it is
  Tensor exp(Tensor x);                   ///< e^x; +Inf past 88.7
  Tensor log(Tensor x);                   ///< natural logarithm; -Inf at 0, NaN below
  Tensor sqrt(Tensor x);                  ///< NaN below 0
  Tensor sigmoid(Tensor x);               ///< 1 / (1 + e^-x)
  Tensor tanh(Tensor x);
  Tensor swish(Tensor x);                         ///< x * sigmoid(x), also called SiLU; 0 at -Inf
  Tensor gelu(Tensor x);                          ///< x/2 * (1 + erf(x / sqrt 2)), the exact form; 0 at -Inf
  Tensor gelu_tanh(Tensor x);                     ///< the tanh approximation of gelu; 0 at -Inf
  Tensor clamp(Tensor x, float low, float high);  ///< invalid_argument unless low <= high
  Tensor copy(Tensor x);                          ///< the same elements in memory of their own; of any type
  Tensor square(Tensor x);                        ///< x * x
  Tensor reciprocal(Tensor x);                    ///< 1 / x
  Tensor rsqrt(Tensor x);                         ///< 1 / sqrt(x); +Inf at 0, NaN below
  Tensor sign(Tensor x);                          ///< -1, 0 or 1
  Tensor floor(Tensor x);
  Tensor ceil(Tensor x);
  Tensor round(Tensor x);                    ///< to the nearest whole number, halves to the even one
  Tensor sin(Tensor x);                      ///< of any finite x; NaN at infinities
  Tensor cos(Tensor x);                      ///< of any finite x; NaN at infinities
  Tensor tan(Tensor x);                      ///< of any finite x; NaN at infinities
  Tensor erf(Tensor x);                      ///< the error function
  Tensor leaky_relu(Tensor x, float slope);  ///< x < 0 ? slope * x : x
  Tensor elu(Tensor x, float scale);         ///< x < 0 ? scale * (e^x - 1) : x
  Tensor softplus(Tensor x);                 ///< log(1 + e^x)
  Tensor hard_sigmoid(Tensor x);             ///< x / 6 + 1/2 between 0 and 1
  Tensor hard_swish(Tensor x);               ///< x * hard_sigmoid(x); 0 below -3

  // --- The same elements in another shape: a view, which costs nothing ----------------------------------

  /// The elements of x, in order, as `shape`, which has as many. A view is no op: nothing is computed or copied, and
  /// reading it reads x. Errc::shape_mismatch where the numbers of elements differ.
  Tensor reshape(Tensor x, Shape shape);
  Tensor flatten(Tensor x);  ///< 1-D
  Tensor squeeze(Tensor x);  ///< without dims of extent 1; at least one dim stays
  Tensor unsqueeze(Tensor x,
                   std::int64_t axis);  ///< with a dim of extent 1 before `axis`; negative ones count from the end

  // --- Some of the elements, or the same ones in another order --------------------------------------------
  //
  // Elementwise ops read what these choose where it lies, without a dispatch or a copy; a view of a view is one view.
  // For other ops, and to be read, the elements are copied, once. An axis may be counted from the end. Of an imported
  // buffer they choose what it has at this point of the recording, whatever is stored to it later.

  /// x[begin:end:step, ...] as in numpy, with a range for each of the first dims; the others are taken whole:
  /// `slice(x, {{1, 3}, {0, Range::past_last, 2}})`. A result may have no elements. invalid_argument for a step of 0
  /// and for more ranges than dims.
  Tensor slice(Tensor x, Span<const Range> ranges);
  Tensor slice(Tensor x, std::initializer_list<Range> ranges);
  /// The same along one axis.
  Tensor slice(Tensor x, std::int64_t axis, Range range);
  /// Equal parts along an axis, in order; none after an error. shape_mismatch unless they come out even.
  std::vector<Tensor> split(Tensor x, std::uint64_t parts, std::int64_t axis = 0);
  /// Dim i of the result is dim axes[i] of x. invalid_argument unless every dim is there once.
  Tensor permute(Tensor x, Axes axes);
  /// permute() of the last two dims: a matrix transposed.
  Tensor transpose(Tensor x);
  /// Repeats x along new dims in front and along dims of extent 1, as in numpy: {3, 1} to {2, 3, 4}.
  Tensor expand(Tensor x, Shape shape);
  /// Tensors of one type side by side along an axis; their other extents must agree. Copied only where necessary.
  Tensor concat(Span<const Tensor> parts, std::int64_t axis = 0);
  Tensor concat(std::initializer_list<Tensor> parts, std::int64_t axis = 0);

  // --- Two operands, broadcast ----------------------------------------------------------------------

  // Both f32 or, but for pow(), both i32. Sums, differences and products of i32 wrap around.

  Tensor add(Tensor x, Tensor y);
  Tensor sub(Tensor x, Tensor y);
  Tensor mul(Tensor x, Tensor y);
  /// x / y. Of i32 it is rounded down (towards -Inf): -7 / 2 is -4. 0 where y is 0; the lowest number divided by -1 is
  /// itself.
  Tensor div(Tensor x, Tensor y);
  /// x - floor(x / y) * y, computed as if exactly: what is left of x, with the sign of y, as in Python. mod(-7, 2) is 1
  /// and mod(7, -2) is -1. Of f32, NaN where y is 0 or x infinite, and where y is infinite x if it has the sign of y,
  /// otherwise y. Of i32, 0 where y is 0.
  Tensor mod(Tensor x, Tensor y);
  Tensor min(Tensor x, Tensor y);
  Tensor max(Tensor x, Tensor y);
  /// x^y. For x < 0 only whole y have a power, others give NaN. NaN in either operand gives NaN, also in pow(NaN, 0).
  Tensor pow(Tensor x, Tensor y);

  // --- Comparisons and masks, broadcast -------------------------------------------------------------

  // Comparisons take two f32 or two i32 and give a mask. A NaN is neither equal to anything, nor below, nor above: only
  // ne() is true. Zeros are equal whatever their sign.

  Tensor eq(Tensor x, Tensor y);  ///< x == y
  Tensor ne(Tensor x, Tensor y);  ///< x != y
  Tensor lt(Tensor x, Tensor y);  ///< x < y
  Tensor le(Tensor x, Tensor y);  ///< x <= y
  Tensor gt(Tensor x, Tensor y);  ///< x > y
  Tensor ge(Tensor x, Tensor y);  ///< x >= y

  Tensor logical_and(Tensor x, Tensor y);  ///< of two masks
  Tensor logical_or(Tensor x, Tensor y);   ///< of two masks
  Tensor logical_xor(Tensor x, Tensor y);  ///< of two masks
  Tensor logical_not(Tensor x);            ///< of a mask

  /// x where the mask is true, y elsewhere, bit by bit: what is not taken has no influence, NaN or not. x and y are of
  /// any type, both of the same, or one f16 and the other f32, which gives f32.
  Tensor where(Tensor mask, Tensor x, Tensor y);

  /// The elements of x as another type: f32, f16, i32 or mask; x itself if that is its type. From f32 to i32 they are
  /// cut off towards 0, and past the range of i32 its nearest number; NaN gives 0. From i32 to f32 they are rounded
  /// past 2^24. A mask is true where x is not 0, NaN included, and becomes 1 and 0. To f16 they are rounded to the
  /// nearest, ties to even: denormals of f16 are kept, and from 65520 on it is infinity.
  Tensor cast(Tensor x, DType type);

  // --- Reductions over all elements; the result has shape {1} --------------------------------------

  Tensor sum(Tensor x);            ///< 0 for no elements
  Tensor dot(Tensor x, Tensor y);  ///< sum of products; the sizes must agree, the shapes need not
  Tensor max(Tensor x);            ///< NaN if any element is; empty_input for no elements
  Tensor min(Tensor x);            ///< NaN if any element is; empty_input for no elements

  // --- Reductions over some axes --------------------------------------------------------------------
  //
  // Axes are counted from 0, or from the end with -1 for the last; Axes() is all of them. The reduced dims are left out
  // of the result's shape, or stay with extent 1 if keep_dims is set; where no dim is left the shape is {1}. Reducing
  // axes that lie side by side takes one pass over memory, and each further block of axes one more over what the one
  // before left. A NaN gives NaN in every result whose elements it is among. What no elements give is stated, and is
  // empty_input where there is nothing to give, unless the result has no elements itself. Errors: invalid_argument for
  // an axis that is out of range or given twice.

  Tensor sum(Tensor x, Axes axes, bool keep_dims = false);   ///< 0 for no elements
  Tensor mean(Tensor x, Axes axes, bool keep_dims = false);  ///< NaN for no elements; Inf where the sum overflows
  Tensor prod(Tensor x, Axes axes, bool keep_dims = false);  ///< 1 for no elements
  Tensor max(Tensor x, Axes axes, bool keep_dims = false);   ///< empty_input for no elements
  Tensor min(Tensor x, Axes axes, bool keep_dims = false);   ///< empty_input for no elements
  Tensor sum_of_squares(Tensor x, Axes axes, bool keep_dims = false);  ///< 0 for no elements
  Tensor l1_norm(Tensor x, Axes axes, bool keep_dims = false);         ///< sum of |x|; 0 for no elements
  /// sqrt of the sum of squares, Inf where that overflows; 0 for no elements
  Tensor l2_norm(Tensor x, Axes axes, bool keep_dims = false);
  /// log of the sum of e^x, without overflow on the way; -Inf for no elements
  Tensor logsumexp(Tensor x, Axes axes, bool keep_dims = false);

  /// Whether any element of a mask is true, or all are, over the axes; false and true for no elements. They take a cast
  /// to f32 and a sum. Errc::type_mismatch unless x is a mask.
  Tensor any(Tensor x, Axes axes = {}, bool keep_dims = false);
  Tensor all(Tensor x, Axes axes = {}, bool keep_dims = false);

  /// The index of the largest or smallest element along the axis, as i32: the first of equal ones. NaN counts as larger
  /// than anything for argmax(), as smaller for argmin(); the first one is taken. x is f32 or i32. The dim is left out
  /// of the result's shape, or stays with extent 1 if keep_dim is set. empty_input for no elements.
  Tensor argmax(Tensor x, std::int64_t axis = -1, bool keep_dim = false);
  Tensor argmin(Tensor x, std::int64_t axis = -1, bool keep_dim = false);

  // --- Rows by index --------------------------------------------------------------------------------

  // An index is an i32 tensor of any shape. Its elements number the rows of a table, its parts along the first dim;
  // negative ones count from the end, -1 is the last.

  /// The rows of the table that the index names, as an embedding does: table [V, D...] and an index of shape S give
  /// [S..., D...]. A row that is not there consists of NaN, of the lowest number for i32, of false for masks.
  Tensor gather(Tensor table, Tensor index);

  /// x with other rows in place of those that the index names: x [V, D...], an index of shape S and rows [S..., D...],
  /// of the type of x. Where several rows are for the same place the last one counts; those for places that are not
  /// there are left out.
  Tensor update_rows(Tensor x, Tensor index, Tensor rows);

  // --- Along one axis; the result has the shape of x -----------------------------------------------

  // An axis may be counted from the end: -1 is the last dim. Errc::invalid_argument if x has no such dim.

  /// exp(x) / sum(exp(x)) along the axis, computed without overflow whatever x is. -Inf gives 0. Where there is NaN or
  /// +Inf along the axis, or nothing but -Inf, all results along it are NaN.
  Tensor softmax(Tensor x, std::int64_t axis = -1);
  /// The logarithm of softmax(), precise where that is close to 0. -Inf gives -Inf; NaN as for softmax().
  Tensor log_softmax(Tensor x, std::int64_t axis = -1);
  /// (x - mean) / sqrt(variance + epsilon) over the last dim, times the weight and plus the bias, whose shape is that
  /// of the last dim: {cols} for {rows, cols}. The variance is that of the whole row, divided by its length. A row with
  /// NaN or infinity in it, or with a variance past the range of f32, is NaN. invalid_argument unless epsilon >= 0.
  Tensor layer_norm(Tensor x, Tensor weight, Tensor bias, float epsilon = 1e-5f);
  Tensor layer_norm(Tensor x, float epsilon = 1e-5f);
  /// x / sqrt(mean of x * x + epsilon) over the last dim, times the weight; otherwise as layer_norm().
  Tensor rms_norm(Tensor x, Tensor weight, float epsilon = 1e-5f);
  Tensor rms_norm(Tensor x, float epsilon = 1e-5f);
  /// Each element plus all before it along the axis. NaN stays from where it is to the end; infinities are as IEEE 754
  /// has them.
  Tensor cumsum(Tensor x, std::int64_t axis = -1);

  // --- Matrix product -------------------------------------------------------------------------------

  /// [M, K] x [K, N] -> [M, N], sizes from the shapes; a 1-D operand is a row (left) or a column
  /// (right). With Layout::nk the second operand is [N, K] and is used transposed.
  ///
  /// More dims are a batch of products, [..., M, K] x [..., K, N] -> [..., M, N]: the leading dims broadcast as in
  /// numpy, so that one of extent 1, or a missing one, repeats. All products of a batch run in one dispatch, as do the
  /// repacking and adding up that some kernels need. Where the second operand has no leading dims of its own, as a
  /// weight has none, those of the first are rows: one product of [... * M, K].
  ///
  /// Errors: shape_mismatch for inner sizes or leading dims that differ, and for a 1-D operand beside one of more than
  /// two dims.
  Tensor matmul(Tensor a, Tensor b, const MatmulOptions& options = {});

  /// The same on flat data: a holds m*k elements, b holds k*n, whatever their shapes.
  Tensor matmul(Tensor a, Tensor b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                const MatmulOptions& options = {});

  /// x W^T + bias: x[..., M, K], w[N, K], bias[N]. Without a bias it is matmul with Layout::nk.
  Tensor linear(Tensor x, Tensor w);
  Tensor linear(Tensor x, Tensor w, Tensor bias);

  // --- Kernels of your own --------------------------------------------------------------------------

  /// Runs a kernel: its inputs, in the order of their binding numbers, the shape of its output, the number of
  /// workgroups, and its push constants. It is an op like any other: barriers, memory and order are planned.
  /// Buffers are bound with the exact size of their tensor, so `.length()` is the number of elements. What the kernel
  /// does not write of its output is undefined; reading or writing outside its buffers is undefined behaviour. Inputs
  /// of f16 are cast to f32 first; outputs are f32 or i32.
  ///
  /// Errors: invalid_argument for a kernel of another device, a number of inputs or outputs that is not the kernel's,
  /// or zero workgroups; shape_mismatch for push constants of another size, or a buffer that is read and written whose
  /// input and output differ in size; empty_input for a tensor without elements; limit_exceeded for more workgroups
  /// than the device takes.
  Tensor call(const Kernel& kernel, Span<const Tensor> inputs, const ValueSpec& output, Groups groups,
              Span<const std::byte> push = {});
  Tensor call(const Kernel& kernel, std::initializer_list<Tensor> inputs, const ValueSpec& output, Groups groups,
              Span<const std::byte> push = {});

  /// The same for a kernel with any number of outputs, in the order of their binding numbers. As many tensors as
  /// `outputs`, invalid ones if the call was refused; none at all if the host is out of memory.
  std::vector<Tensor> call_all(const Kernel& kernel, Span<const Tensor> inputs, Span<const ValueSpec> outputs,
                               Groups groups, Span<const std::byte> push = {});
  std::vector<Tensor> call_all(const Kernel& kernel, std::initializer_list<Tensor> inputs,
                               std::initializer_list<ValueSpec> outputs, Groups groups,
                               Span<const std::byte> push = {});

  // --- Outputs --------------------------------------------------------------------------------------

  /// Copies x into a resident buffer of the same size and type when the batch runs.
  void store(Tensor x, const Buffer& destination);

  /// destination[ranges] = x as in numpy: copies x into a slice of a resident buffer of the same type when the batch
  /// runs. Ranges are those of slice(), with steps of either sign. The rest of the buffer keeps its contents, and a
  /// slice without elements changes nothing. What was recorded before reads the old contents, what is recorded after it
  /// the new ones. x has as many elements as the slice, in any shape, or broadcasts to its shape.
  /// Errors: shape_mismatch, type_mismatch, and invalid_argument as in slice().
  ///
  ///     batch.store(key, cache, {Range::at(position)});    // a row
  ///     batch.store(tile, image, {{16, 32}, {48, 64}});    // a tile
  ///     batch.store(batch.fill(0, {1}), cache, {{0, 8}});  // eight rows of zeros
  void store(Tensor x, const Buffer& destination, Span<const Range> ranges);
  void store(Tensor x, const Buffer& destination, std::initializer_list<Range> ranges);

  /// Makes x readable after execute() even when other ops consume it. Returns x.
  Tensor keep(Tensor x);

  // --- Running --------------------------------------------------------------------------------------

  /// Plans and encodes what was recorded since the last execute(), submits it once and waits.
  /// Reports the first recording error, if there is one, and then runs nothing. After a failure to plan,
  /// encode or submit the batch is as it was before the call. When only the wait fails (the device is
  /// lost, the host out of memory) the work is in flight, and read() waits for it again.
  Error execute();

  /// execute() without the wait: read() waits, and so does Submission::wait().
  Result<Submission> submit();

  /// What execute() would run, planned and encoded for many runs. The batch stays as it is; values of
  /// earlier executions are inputs of the program with the contents they have.
  Result<Program> compile();

  /// The elements of a readable value. Errors: not_executed, not_kept, type_mismatch unless x is f32 or f16, and those
  /// of bad handles.
  Result<std::vector<float>> read(Tensor x) const;
  /// The same for i32 and masks, which give 0 and 1.
  Result<std::vector<std::int32_t>> read_i32(Tensor x) const;
  /// The bits of f16.
  Result<std::vector<std::uint16_t>> read_f16(Tensor x) const;
  /// The same into caller-provided memory. Errc::shape_mismatch unless out.size() == x.size().
  Error read(Tensor x, Span<float> out) const;
  Error read(Tensor x, Span<std::int32_t> out) const;
  Error read(Tensor x, Span<std::uint16_t> out) const;

  /// Discards everything recorded and every result; existing tensors become stale. The next
  /// execute() starts over. Errors are cleared, counts start at zero. Keeps the memory of the largest
  /// execution and that of the last uploads, until other work needs the former or a few executions have had no use for
  /// it, so that recording and executing a similar batch allocates little. Where the host can read and write device
  /// memory, uploads then go straight to their place in it. A new Batch starts without that memory.
  void reset();

  // --- Inspecting -----------------------------------------------------------------------------------

  /// The first recording error, if any. It stays until clear_error() or reset().
  const Error& error() const noexcept;
  /// Clears the error and returns it. What was recorded stays.
  Error clear_error() noexcept;

  std::size_t num_operations() const noexcept;  ///< ops recorded since the batch was created or reset
  std::size_t num_buffers() const noexcept;     ///< values: uploads, imports and results
  BatchStats stats() const noexcept;

  /// The device memory that compile() would allocate now, to the byte, and execute(), unless it finds an arena that
  /// reset() left. Plans what is recorded, and allocates nothing. Fails as dump() does.
  Result<MemoryNeeds> predict_memory() const;

  /// What execute() would run now. With DumpStage::recorded, what was recorded since the last execute(),
  /// before anything is dropped, fused or placed: that never fails, and leaves out ops that were refused.
  Result<std::string> dump(DumpFormat format = DumpFormat::text, DumpStage stage = DumpStage::planned) const;

 private:
  friend struct OpAccess;
  friend struct RunAccess;
  struct BRONTES_LOCAL State;
  std::unique_ptr<State> state_;
};

}  // namespace brontes
