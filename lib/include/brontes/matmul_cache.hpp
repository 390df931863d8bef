// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/matmul.hpp>
#include <brontes/stats.hpp>
#include <brontes/tensor.hpp>
#include <brontes/weight.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace brontes {

/// What is done to each element of a product before it is written; the ops are those of Batch.
enum class Activation : std::uint8_t {
  none,
  relu,
  sigmoid,
  tanh,
  swish,  ///< also called SiLU
  gelu,   ///< the exact form, by erf
  gelu_tanh,
};

/// "none", "relu" and so on. Never null.
BRONTES_API const char* to_string(Activation activation) noexcept;

/// The epilogue of a product: y = activation(alpha * x W^T + bias), in the same dispatch.
struct MatmulEpilogue {
  Activation activation = Activation::none;
  float alpha = 1.0f;
  /// Adds the bias that was uploaded with the weight, if there was one.
  bool bias = true;
};

struct MatmulCacheOptions {
  /// A call is planned and encoded once per weight, m and epilogue. This many such programs are kept; beyond
  /// that the least recently used one is dropped. Each has a command buffer and some descriptors. At least 1.
  std::size_t max_programs = 512;
  /// Forces one kernel for every product, for tests and benchmarks.
  MatmulKernel kernel = MatmulKernel::automatic;
  /// Of every product.
  Precision precision = Precision::automatic;
};

/// What a MatmulCache knows of a weight.
struct CachedWeightInfo {
  Shape shape;  ///< [N, K]
  DType dtype = DType::f32;
  std::uint64_t bytes = 0;  ///< of device memory, with padding and bias
  std::size_t parts = 0;    ///< more than one if it is too large for one binding
  bool bias = false;
};

/// Weights by name, resident on the device, and products with them from host memory to host memory:
///
///     brontes::MatmulCache cache(device);
///     if (auto e = cache.upload_weight("fc1", weights, outputs, inputs)) return fail(e);
///     if (auto e = cache.matmul("fc1", x, y, rows)) return fail(e);    // y[rows, outputs] = x[rows, inputs] W^T
///
/// A weight W[N, K] is row-major, N = rows outputs of K = columns inputs, as model files have it, and every m
/// gives the same product. What does not fit one binding of the device is split, never dropped.
///
/// **Cost.** The first call for a weight, an m and an epilogue plans and encodes; it may create a pipeline.
/// From then on such a call writes x, submits once, waits, and reads y: no allocation on host or device, no
/// pipeline. Inputs, outputs and temporaries of all weights share one set of buffers. It grows in powers of two
/// to what the largest call needs, which drops the programs made so far; trim() frees it. On CPU drivers it can
/// become large: for 32 rows and more, a weight that is not f32 is first unpacked into a temporary.
///
/// **Numbers.** As Batch::linear() and the ops of Batch: f32 arithmetic whatever the weight is stored as, unless
/// MatmulCacheOptions::precision allows less.
///
/// **Failure.** A call that fails leaves the weights and its output unchanged. A name is any string that is not
/// empty. An unknown name is Errc::not_found; the message lists some known ones.
///
/// Evicting or replacing a weight that work in flight still uses, for example in a Batch, is safe: its memory is
/// freed when that work is done.
///
/// Thread-safety: every method may be called from any thread. Calls on one cache are serialised, including the wait
/// for the device; only the conversion of weights being uploaded runs in parallel. For parallel products use
/// several caches of one Device, or batches over weight().
class BRONTES_API MatmulCache {
 public:
  explicit MatmulCache(const Device& device, const MatmulCacheOptions& options = {});
  MatmulCache(MatmulCache&&) noexcept;
  MatmulCache& operator=(MatmulCache&&) noexcept;
  ~MatmulCache();

  // --- Weights --------------------------------------------------------------------------------------

  /// Stores f32 data, row-major, as `type`; see Weight::from() for what that costs in accuracy, and for the
  /// errors. A bias has one element per row, or none for no bias. Errc::already_exists when there is a
  /// weight of that name.
  Error upload_weight(std::string_view name, Span<const float> data, std::uint64_t rows, std::uint64_t columns,
                      DType type = DType::f32, Span<const float> bias = {});
  /// The same from data as GGUF files store it: Weight::from_stored().
  Error upload_stored(std::string_view name, Span<const std::byte> data, std::uint64_t rows, std::uint64_t columns,
                      DType type, Span<const float> bias = {});

  /// Replaces a weight, matrix and bias together, by another of any shape and type. Errc::not_found if there is
  /// none of that name. The old one stays until the new one is on the device.
  Error replace_weight(std::string_view name, Span<const float> data, std::uint64_t rows, std::uint64_t columns,
                       DType type = DType::f32, Span<const float> bias = {});
  Error replace_stored(std::string_view name, Span<const std::byte> data, std::uint64_t rows, std::uint64_t columns,
                       DType type, Span<const float> bias = {});

  /// Whether there was such a weight.
  bool evict(std::string_view name);
  /// Evicts all. The I/O buffers stay.
  void clear();

  bool contains(std::string_view name) const;
  std::size_t weight_count() const;
  std::uint64_t weight_bytes() const;      ///< of device memory, with padding and biases
  std::vector<std::string> names() const;  ///< sorted
  Result<CachedWeightInfo> info(std::string_view name) const;

  /// The weight itself, for Batch::import_weight(). It stays valid after the name is evicted or replaced, for as
  /// long as the caller, or a batch that imported it, holds it. It does not include the bias.
  Result<std::shared_ptr<const Weight>> weight(std::string_view name) const;

  // --- Products -------------------------------------------------------------------------------------

  /// output[m, N] = input[m, K] W^T with the epilogue. Output and input may be the same memory. Does nothing
  /// when m is 0. Errors: not_found; shape_mismatch unless input has m * K elements and output m * N; null_data;
  /// limit_exceeded when either is more than the device can bind; and whatever the driver reports.
  Error matmul(std::string_view name, Span<const float> input, Span<float> output, std::uint64_t m,
               const MatmulEpilogue& epilogue = {});

  // --- Memory and counts ----------------------------------------------------------------------------

  /// Bytes of the buffers that calls share; 0 before the first.
  std::uint64_t io_bytes() const;
  /// Programs that are kept, at most MatmulCacheOptions::max_programs.
  std::size_t program_count() const;
  /// Frees the I/O buffers and the programs. The next call of each kind plans and allocates again.
  void trim();

  /// Exact counts of all calls so far. `operations` and `fused_operations` count what was recorded and planned,
  /// once per program, not once per call; `arena_bytes` is the shared arena as it is now.
  BatchStats stats() const;

 private:
  struct BRONTES_LOCAL State;
  std::unique_ptr<State> state_;
};

}  // namespace brontes
