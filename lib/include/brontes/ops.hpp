// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/matmul.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>

/// Synchronous calls for a single op: upload, run, read back, all before they return.
///
/// Each is a Batch with one op in it, so numbers, errors and limits are those of batch.hpp. When
/// several ops follow each other, record them in one Batch: it moves the data once.
///
/// Output spans must have the size of the result (Errc::shape_mismatch); they may be the input's own
/// memory. On failure the output is untouched.
///
/// Thread-safety: may be called from any thread.
namespace brontes::ops {

BRONTES_API Error relu(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error scale(const Device& device, Span<const float> in, float factor, Span<float> out);
BRONTES_API Error offset(const Device& device, Span<const float> in, float amount, Span<float> out);
BRONTES_API Error neg(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error abs(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error exp(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error log(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error sqrt(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error sigmoid(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error tanh(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error swish(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error gelu(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error gelu_tanh(const Device& device, Span<const float> in, Span<float> out);
BRONTES_API Error clamp(const Device& device, Span<const float> in, float low, float high, Span<float> out);

BRONTES_API Error add(const Device& device, Span<const float> x, Span<const float> y, Span<float> out);
BRONTES_API Error sub(const Device& device, Span<const float> x, Span<const float> y, Span<float> out);
BRONTES_API Error mul(const Device& device, Span<const float> x, Span<const float> y, Span<float> out);
BRONTES_API Error div(const Device& device, Span<const float> x, Span<const float> y, Span<float> out);
BRONTES_API Error min(const Device& device, Span<const float> x, Span<const float> y, Span<float> out);
BRONTES_API Error max(const Device& device, Span<const float> x, Span<const float> y, Span<float> out);

BRONTES_API Result<float> sum(const Device& device, Span<const float> in);
BRONTES_API Result<float> dot(const Device& device, Span<const float> x, Span<const float> y);
BRONTES_API Result<float> max(const Device& device, Span<const float> in);
BRONTES_API Result<float> min(const Device& device, Span<const float> in);

/// out[m, n] = alpha * a[m, k] x b; b is [k, n] or, with Layout::nk, [n, k].
BRONTES_API Error matmul(const Device& device, Span<const float> a, Span<const float> b, Span<float> out,
                         std::uint64_t m, std::uint64_t k, std::uint64_t n, const MatmulOptions& options = {});

}  // namespace brontes::ops
