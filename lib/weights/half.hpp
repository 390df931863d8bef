// The two 16-bit floats. Free of branches, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace brontes::weights {

/// The nearest IEEE binary16, ties to even: denormals included, Inf from 65520 on, NaN as a quiet NaN
/// with the upper bits of its payload. As the processors' own instructions do it.
constexpr std::uint16_t to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  // Half a unit, less one for ties that are even already; then from an exponent bias of 127 to 15.
  const std::uint32_t rounded = ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - (112u << 10);
  const std::uint32_t normal = magnitude < 0x47800000u ? rounded : 0x7c00u;
  // The unit of a float just above 0.5 is that of a denormal half, 2^-24: the addition rounds.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t number = magnitude < 0x38800000u ? denormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude > 0x7f800000u ? nan : number));
}

/// Exact.
constexpr float from_f16(std::uint16_t half) noexcept {
  const std::uint32_t sign = (std::uint32_t{half} & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  // As in to_f16. A product with a power of two would meet denormal floats, which a host program may
  // have told its processor to take for zeros.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(std::bit_cast<std::uint32_t>(0.5f) + magnitude) - 0.5f);
  const std::uint32_t special = magnitude << 13 | 0x7f800000u;
  const std::uint32_t number = magnitude < 0x400u ? denormal : normal;
  return std::bit_cast<float>(sign | (magnitude < 0x7c00u ? number : special));
}

/// The nearest bfloat16, ties to even: denormals are kept, NaN becomes a quiet NaN.
constexpr std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const std::uint32_t nan = bits >> 16 | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/// Exact.
constexpr float from_bf16(std::uint16_t brain) noexcept { return std::bit_cast<float>(std::uint32_t{brain} << 16); }

}  // namespace brontes::weights
