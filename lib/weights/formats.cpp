#include "weights/formats.hpp"

#include "weights/half.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

namespace brontes::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is little-endian, and so are these copies");

constexpr std::size_t lanes = 32;  // a block of the quantised types, and a handy number for the others
constexpr std::size_t scale_bytes = 2;
constexpr std::size_t q8_0_bytes = block_bytes(DType::q8_0);
constexpr std::size_t q4_0_bytes = block_bytes(DType::q4_0);
static_assert(block_elements(DType::q8_0) == lanes && block_elements(DType::q4_0) == lanes);

constexpr std::int32_t infinity_bits = 0x7f800000;

// The loops of this file run over arrays of a known length on the stack: these g++ vectorises at -O2,
// with no question of alignment or of what overlaps.
template <class From, class To, class Convert>
void convert(const void* in, std::uint64_t count, void* out, Convert one) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  From source[lanes] = {};
  To target[lanes];
  for (; count >= lanes; count -= lanes, from += sizeof source, to += sizeof target) {
    std::memcpy(source, from, sizeof source);
    for (std::size_t i = 0; i < lanes; ++i) target[i] = one(source[i]);
    std::memcpy(to, target, sizeof target);
  }
  if (count == 0) return;
  std::memcpy(source, from, count * sizeof(From));
  for (std::size_t i = 0; i < lanes; ++i) target[i] = one(source[i]);
  std::memcpy(to, target, count * sizeof(To));
}

// The bits of the largest magnitude, which sort as the magnitudes do; NaN is above Inf. Integers,
// because a maximum of floats does not vectorise under IEEE rules.
std::int32_t largest_bits(const float (&block)[lanes]) {
  std::int32_t bits[lanes];
  std::memcpy(bits, block, sizeof bits);
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < lanes; ++i) largest = std::max(largest, bits[i] & 0x7fffffff);
  return largest;
}

// The first element of largest magnitude, with its sign; +0 in a block of zeros.
float extreme(const float (&block)[lanes], std::int32_t largest) {
  if (largest == 0) return 0.0f;
  std::size_t i = 0;
  while ((std::bit_cast<std::int32_t>(block[i]) & 0x7fffffff) != largest) ++i;
  return block[i];
}

float scale_of(DType type, const float (&block)[lanes], std::int32_t largest) {
  if (type == DType::q8_0) return std::bit_cast<float>(largest) / 127.0f;
  return extreme(block, largest) / -8.0f;
}

float inverse(float scale) {
  if (scale == 0.0f) return 0.0f;
  const float result = 1.0f / scale;
  return std::isfinite(result) ? result : 0.0f;
}

std::int32_t round_half_away(float value) {
  const auto whole = static_cast<std::int32_t>(value);
  const float rest = value - static_cast<float>(whole);
  return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}

float load_scale(const std::byte* block) {
  std::uint16_t half;
  std::memcpy(&half, block, sizeof half);
  return from_f16(half);
}

void store_scale(float scale, std::byte* block) {
  const std::uint16_t half = to_f16(scale);
  std::memcpy(block, &half, sizeof half);
}

void encode_q8_0(const float* in, std::uint64_t blocks, std::byte* out) {
  float block[lanes];
  std::int8_t quants[lanes];
  for (; blocks > 0; --blocks, in += lanes, out += q8_0_bytes) {
    std::memcpy(block, in, sizeof block);
    const std::int32_t largest = largest_bits(block);
    if (largest >= infinity_bits) {
      store_scale(std::numeric_limits<float>::quiet_NaN(), out);
      std::memset(out + scale_bytes, 0, sizeof quants);
      continue;
    }
    const float scale = scale_of(DType::q8_0, block, largest);
    const float factor = inverse(scale);
    for (std::size_t i = 0; i < lanes; ++i) quants[i] = static_cast<std::int8_t>(round_half_away(block[i] * factor));
    store_scale(scale, out);
    std::memcpy(out + scale_bytes, quants, sizeof quants);
  }
}

void decode_q8_0(const std::byte* in, std::uint64_t blocks, float* out) {
  std::int8_t quants[lanes];
  float block[lanes];
  for (; blocks > 0; --blocks, in += q8_0_bytes, out += lanes) {
    const float scale = load_scale(in);
    std::memcpy(quants, in + scale_bytes, sizeof quants);
    for (std::size_t i = 0; i < lanes; ++i) block[i] = static_cast<float>(quants[i]) * scale;
    std::memcpy(out, block, sizeof block);
  }
}

void encode_q4_0(const float* in, std::uint64_t blocks, std::byte* out) {
  float block[lanes];
  std::int32_t quants[lanes];
  std::uint8_t pairs[lanes / 2];
  for (; blocks > 0; --blocks, in += lanes, out += q4_0_bytes) {
    std::memcpy(block, in, sizeof block);
    const std::int32_t largest = largest_bits(block);
    if (largest >= infinity_bits) {
      store_scale(std::numeric_limits<float>::quiet_NaN(), out);
      std::memset(out + scale_bytes, 0x88, sizeof pairs);
      continue;
    }
    const float scale = scale_of(DType::q4_0, block, largest);
    const float factor = inverse(scale);
    for (std::size_t i = 0; i < lanes; ++i) {
      quants[i] = std::min(static_cast<std::int32_t>(block[i] * factor + 8.5f), 15);
    }
    for (std::size_t i = 0; i < lanes / 2; ++i) {
      pairs[i] = static_cast<std::uint8_t>(quants[i] | quants[i + lanes / 2] << 4);
    }
    store_scale(scale, out);
    std::memcpy(out + scale_bytes, pairs, sizeof pairs);
  }
}

void decode_q4_0(const std::byte* in, std::uint64_t blocks, float* out) {
  std::uint8_t pairs[lanes / 2];
  float block[lanes];
  for (; blocks > 0; --blocks, in += q4_0_bytes, out += lanes) {
    const float scale = load_scale(in);
    std::memcpy(pairs, in + scale_bytes, sizeof pairs);
    for (std::size_t i = 0; i < lanes / 2; ++i) block[i] = static_cast<float>((pairs[i] & 15) - 8) * scale;
    for (std::size_t i = 0; i < lanes / 2; ++i) block[i + lanes / 2] = static_cast<float>((pairs[i] >> 4) - 8) * scale;
    std::memcpy(out, block, sizeof block);
  }
}

bool quantised(DType type) { return block_elements(type) > 1; }

std::string number(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

std::string position(std::uint64_t element, std::uint64_t columns) {
  return "[" + std::to_string(element / columns) + ", " + std::to_string(element % columns) + "]";
}

Error check_row(DType type, std::uint64_t columns) {
  if (row_ok(type, columns)) return {};
  return Error(Errc::shape_mismatch, std::string(to_string(type)) + " weights have rows of whole blocks of " +
                                         std::to_string(block_elements(type)) + " elements, and " +
                                         std::to_string(columns) + " is not a multiple of it");
}

}  // namespace

Error check(DType type, const float* in, std::uint64_t rows, std::uint64_t columns) {
  if (Error e = check_row(type, columns)) return e;
  if (!quantised(type)) return {};
  const std::uint64_t count = rows * columns;
  float block[lanes];
  for (std::uint64_t first = 0; first < count; first += lanes) {
    std::memcpy(block, in + first, sizeof block);
    const std::int32_t largest = largest_bits(block);
    const bool finite = largest < infinity_bits;
    if (finite && std::isfinite(from_f16(to_f16(scale_of(type, block, largest))))) continue;
    std::uint64_t at = 0;
    while ((std::bit_cast<std::int32_t>(block[at]) & 0x7fffffff) < (finite ? largest : infinity_bits)) ++at;
    const std::string what = std::string(to_string(type)) + " weights: element " + position(first + at, columns) +
                             " is " + number(block[at]);
    if (!finite) {
      return Error(Errc::invalid_argument, what + ", and the 32 weights of its block share one finite scale");
    }
    return Error(Errc::invalid_argument, what + ", and magnitudes have to be below " +
                                             (type == DType::q8_0 ? "8321040" : "524160") +
                                             " for the scale to be an f16");
  }
  return {};
}

Error check_stored(DType type, const std::byte* in, std::uint64_t rows, std::uint64_t columns) {
  if (Error e = check_row(type, columns)) return e;
  if (!quantised(type)) return {};
  const std::uint64_t blocks = rows * (columns / lanes);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const float scale = load_scale(in + i * block_bytes(type));
    if (std::isfinite(scale)) continue;
    return Error(Errc::invalid_argument, std::string(to_string(type)) + " weights: the block at " +
                                             position(i * lanes, columns) + " has the scale " + number(scale));
  }
  return {};
}

void encode(DType type, const float* in, std::uint64_t count, std::byte* out) {
  if (count == 0) return;
  switch (type) {
    case DType::f32:
    case DType::i32:  // of no weight
    case DType::mask: std::memcpy(out, in, count * sizeof(float)); return;
    case DType::f16: convert<float, std::uint16_t>(in, count, out, [](float value) { return to_f16(value); }); return;
    case DType::bf16: convert<float, std::uint16_t>(in, count, out, [](float value) { return to_bf16(value); }); return;
    case DType::q8_0: encode_q8_0(in, count / lanes, out); return;
    case DType::q4_0: encode_q4_0(in, count / lanes, out); return;
  }
}

void decode(DType type, const std::byte* in, std::uint64_t count, float* out) {
  if (count == 0) return;
  switch (type) {
    case DType::f32:
    case DType::i32:  // of no weight
    case DType::mask: std::memcpy(out, in, count * sizeof(float)); return;
    case DType::f16:
      convert<std::uint16_t, float>(in, count, out, [](std::uint16_t half) { return from_f16(half); });
      return;
    case DType::bf16:
      convert<std::uint16_t, float>(in, count, out, [](std::uint16_t brain) { return from_bf16(brain); });
      return;
    case DType::q8_0: decode_q8_0(in, count / lanes, out); return;
    case DType::q4_0: decode_q4_0(in, count / lanes, out); return;
  }
}

double error_bound(DType type, double largest) noexcept {
  constexpr double overflow = std::numeric_limits<double>::infinity();
  // Of an f16 scale that stands for `steps` steps.
  const auto scale_error = [largest](double steps) { return std::max(largest * 0x1p-11, steps * 0x1p-25); };
  switch (type) {
    case DType::f32:
    case DType::i32:  // of no weight
    case DType::mask: return 0;
    case DType::f16: return largest < 65520 ? std::max(largest * 0x1p-11, 0x1p-25) : overflow;
    case DType::bf16: return largest < 0x1.ffp127 ? std::max(largest * 0x1p-8, 0x1p-134) : overflow;
    case DType::q8_0: return largest < 127 * 65520.0 ? largest / 254 + scale_error(127) + largest * 0x1p-21 : overflow;
    case DType::q4_0: return largest < 8 * 65520.0 ? largest / 8 + scale_error(8) + largest * 0x1p-21 : overflow;
  }
  return overflow;
}

}  // namespace brontes::weights
