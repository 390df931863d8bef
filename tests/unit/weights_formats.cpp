// Weights as f16, bf16, q8_0 and q4_0: bytes, rounding, and how far a weight may move.
#include "weights/formats.hpp"
#include "weights/half.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace brontes;
using weights::check;
using weights::check_stored;
using weights::decode;
using weights::encode;
using weights::error_bound;
using weights::from_bf16;
using weights::from_f16;
using weights::to_bf16;
using weights::to_f16;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr DType all_types[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0};

using Bytes = std::vector<std::uint8_t>;

Bytes encoded(DType type, const std::vector<float>& values) {
  Bytes out(row_bytes(type, values.size()));
  encode(type, values.data(), values.size(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<float> decoded(DType type, const Bytes& stored) {
  std::vector<float> out(stored.size() / block_bytes(type) * block_elements(type));
  decode(type, reinterpret_cast<const std::byte*>(stored.data()), out.size(), out.data());
  return out;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// What a 16-bit float of `fraction_bits` and lowest exponent `lowest` is worth, from the definition.
double worth(std::uint16_t pattern, int fraction_bits, int lowest) {
  const int fraction = pattern & ((1 << fraction_bits) - 1);
  const int exponent = (pattern & 0x7fff) >> fraction_bits;
  const double sign = (pattern & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, lowest - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - 1 + lowest - fraction_bits);
}

// The nearest value of such a format, ties to even, in double precision; Inf from `overflow` on.
double nearest(double value, int fraction_bits, int lowest, double overflow) {
  const double magnitude = std::fabs(value);
  if (magnitude >= overflow) return std::copysign(HUGE_VAL, value);
  const int exponent = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude), lowest);
  const double unit = std::ldexp(1, exponent - fraction_bits);
  return std::copysign(std::nearbyint(magnitude / unit) * unit, value);
}

double nearest_f16(double value) { return nearest(value, 10, -14, 65520); }
double nearest_bf16(double value) { return nearest(value, 7, -126, 0x1.ffp127); }

// Random bits, without NaN and Inf.
float any_finite(std::mt19937& random) {
  for (;;) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) return value;
  }
}

// A block as ggml's reference describes it, one element at a time.
Bytes reference_block(DType type, const float* x) {
  float extreme = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  const float d = type == DType::q8_0 ? std::fabs(extreme) / 127 : extreme / -8;
  const float id = d != 0 ? 1 / d : 0;
  const std::uint16_t half = to_f16(d);
  Bytes out = {static_cast<std::uint8_t>(half & 255), static_cast<std::uint8_t>(half >> 8)};
  if (type == DType::q8_0) {
    for (int i = 0; i < 32; ++i) out.push_back(static_cast<std::uint8_t>(static_cast<int>(std::round(x[i] * id))));
    return out;
  }
  const auto quant = [&](int i) {
    volatile float product = x[i] * id;  // no contraction
    return std::min(static_cast<int>(product + 8.5f), 15);
  };
  for (int i = 0; i < 16; ++i) out.push_back(static_cast<std::uint8_t>(quant(i) + 16 * quant(i + 16)));
  return out;
}

std::vector<float> block_of(std::vector<float> values) {
  values.resize(32);
  return values;
}

}  // namespace

TEST_CASE("every f16 is decoded exactly and comes back", "[weights]") {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto half = static_cast<std::uint16_t>(pattern);
    const float value = from_f16(half);
    const bool negative = (pattern & 0x8000) != 0;
    bool right = std::signbit(value) == negative;
    if ((pattern & 0x7fff) > 0x7c00) {
      right = right && std::isnan(value) && to_f16(value) == (half | 0x200);
    } else if ((pattern & 0x7fff) == 0x7c00) {
      right = right && value == (negative ? -inf : inf) && to_f16(value) == half;
    } else {
      right = right && double{value} == worth(half, 10, -14) && to_f16(value) == half;
    }
    if (!right) FAIL("pattern " << pattern << " is " << value << " and comes back as " << to_f16(value));
  }
}

TEST_CASE("every bf16 is decoded exactly and comes back", "[weights]") {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto brain = static_cast<std::uint16_t>(pattern);
    const float value = from_bf16(brain);
    const bool negative = (pattern & 0x8000) != 0;
    bool right = std::signbit(value) == negative;
    if ((pattern & 0x7fff) > 0x7f80) {
      right = right && std::isnan(value) && to_bf16(value) == (brain | 0x40);
    } else if ((pattern & 0x7fff) == 0x7f80) {
      right = right && value == (negative ? -inf : inf) && to_bf16(value) == brain;
    } else {
      right = right && double{value} == worth(brain, 7, -126) && to_bf16(value) == brain;
    }
    if (!right) FAIL("pattern " << pattern << " is " << value << " and comes back as " << to_bf16(value));
  }
}

TEST_CASE("halfway between two f16 goes to the even one, and a hair beside it to the nearer", "[weights]") {
  for (std::uint32_t pattern = 0; pattern < 0x7c00; ++pattern) {
    const auto below = static_cast<std::uint16_t>(pattern);
    const auto above = static_cast<std::uint16_t>(pattern + 1);
    // Past 65504 the next would be 65536, and what rounds to it is Inf.
    const double upper = above == 0x7c00 ? 65536 : worth(above, 10, -14);
    const auto middle = static_cast<float>((worth(below, 10, -14) + upper) / 2);
    const std::uint16_t even = below % 2 == 0 ? below : above;
    for (const float sign : {1.0f, -1.0f}) {
      const auto signed_of = [sign](std::uint16_t half) { return sign < 0 ? half | 0x8000 : half; };
      const bool right = to_f16(sign * middle) == signed_of(even) &&
                         to_f16(sign * std::nextafter(middle, 0.0f)) == signed_of(below) &&
                         to_f16(sign * std::nextafter(middle, inf)) == signed_of(above);
      if (!right) FAIL("pattern " << pattern << ", halfway " << sign * middle << " gives " << to_f16(sign * middle));
    }
  }
}

TEST_CASE("halfway between two bf16 goes to the even one, and a hair beside it to the nearer", "[weights]") {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    if ((pattern & 0x7fff) >= 0x7f80) continue;
    const std::uint32_t middle = pattern << 16 | 0x8000;
    const bool right = to_bf16(std::bit_cast<float>(middle)) == pattern + pattern % 2 &&
                       to_bf16(std::bit_cast<float>(middle - 1)) == pattern &&
                       to_bf16(std::bit_cast<float>(middle + 1)) == pattern + 1;
    if (!right) FAIL("pattern " << pattern);
  }
}

TEST_CASE("f16 and bf16 of random floats are those of double precision", "[weights]") {
  std::mt19937 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = any_finite(random);
    // Most floats are out of f16's range: bring the second one into it.
    int exponent = 0;
    const float scaled = std::ldexp(std::frexp(value, &exponent), static_cast<int>(random() % 46) - 28);
    bool right = true;
    for (const float x : {value, scaled}) {
      right = right && double{from_f16(to_f16(x))} == nearest_f16(double{x});
      right = right && double{from_bf16(to_bf16(x))} == nearest_bf16(double{x});
    }
    if (!right) FAIL("at " << value << " or " << scaled);
  }
}

TEST_CASE("f16 overflows to Inf and underflows to a zero of the same sign", "[weights]") {
  CHECK(to_f16(65504.0f) == 0x7bff);
  CHECK(to_f16(65519.996f) == 0x7bff);
  CHECK(to_f16(65520.0f) == 0x7c00);
  CHECK(to_f16(-3e38f) == 0xfc00);
  CHECK(to_f16(inf) == 0x7c00);
  CHECK(to_f16(0x1p-24f) == 0x0001);
  CHECK(to_f16(0x1p-25f) == 0x0000);
  CHECK(to_f16(std::nextafter(0x1p-25f, 1.0f)) == 0x0001);
  CHECK(to_f16(-1e-40f) == 0x8000);
  CHECK(to_f16(-0.0f) == 0x8000);
  CHECK(to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(to_bf16(std::bit_cast<float>(0x7f7f7fffu)) == 0x7f7f);
}

TEST_CASE("a NaN stays a NaN, whatever its payload", "[weights]") {
  for (int bit = 0; bit < 23; ++bit) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const auto value = std::bit_cast<float>(sign | 0x7f800000u | 1u << bit);
      CHECK(std::isnan(from_f16(to_f16(value))));
      CHECK(std::isnan(from_bf16(to_bf16(value))));
      CHECK((to_f16(value) >> 15) == (sign >> 31));
      CHECK((to_bf16(value) >> 15) == (sign >> 31));
    }
  }
  CHECK(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7fffffffu)))));
}

TEST_CASE("the half conversions work at compile time", "[weights]") {
  static_assert(to_f16(1.0f) == 0x3c00);
  static_assert(to_f16(-0x1p-24f) == 0x8001);
  static_assert(from_f16(0x3555) == 0x1.554p-2f);
  static_assert(to_bf16(1.0f) == 0x3f80);
  static_assert(from_bf16(0xc000) == -2.0f);
  SUCCEED();
}

TEST_CASE("rows of f16 and bf16 of any length are the elements one by one", "[weights]") {
  std::mt19937 random(2);
  for (std::size_t count = 0; count < 100; ++count) {
    std::vector<float> values(count);
    for (float& value : values) value = any_finite(random);
    const Bytes halves = encoded(DType::f16, values);
    const Bytes brains = encoded(DType::bf16, values);
    const std::vector<float> from_halves = decoded(DType::f16, halves);
    const std::vector<float> from_brains = decoded(DType::bf16, brains);
    REQUIRE(from_halves.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE((halves[2 * i] | halves[2 * i + 1] << 8) == to_f16(values[i]));
      REQUIRE((brains[2 * i] | brains[2 * i + 1] << 8) == to_bf16(values[i]));
      REQUIRE(bits(from_halves[i]) == bits(from_f16(to_f16(values[i]))));
      REQUIRE(bits(from_brains[i]) == bits(from_bf16(to_bf16(values[i]))));
    }
    REQUIRE(decoded(DType::f32, encoded(DType::f32, values)) == values);
  }
}

TEST_CASE("encode and decode write their row and not a byte more", "[weights]") {
  for (const DType type : all_types) {
    INFO(to_string(type));
    const std::size_t count = block_elements(type) * 3;
    const std::vector<float> values(count, 1.0f);
    std::vector<std::byte> stored(row_bytes(type, count) + 8, std::byte{0xa5});
    encode(type, values.data(), count, stored.data());
    for (std::size_t i = 0; i < 8; ++i) CHECK(stored[row_bytes(type, count) + i] == std::byte{0xa5});
    std::vector<float> out(count + 8, 77.0f);
    decode(type, stored.data(), count, out.data());
    for (std::size_t i = 0; i < 8; ++i) CHECK(out[count + i] == 77.0f);
  }
}

TEST_CASE("a q8_0 block is an f16 scale and 32 signed bytes", "[weights]") {
  // The largest magnitude is 127, so the scale is 1 (3c00) and bytes are the numbers, rounded half away
  // from zero.
  const auto values = block_of({127, -127, 1, -1, 0.5f, -0.5f, 1.5f, -1.5f, 2.5f, -2.5f, 0.49999997f, -0.49999997f,
                                126.5f, -126.5f, 63.25f, -63.75f, 0.25f});
  const Bytes expected = {0x00, 0x3c, 0x7f, 0x81, 0x01, 0xff, 0x01, 0xff, 0x02, 0xfe, 0x03, 0xfd,
                          0x00, 0x00, 0x7f, 0x81, 0x3f, 0xc0, 0x00, 0,    0,    0,    0,    0,
                          0,    0,    0,    0,    0,    0,    0,    0,    0,    0};
  CHECK(encoded(DType::q8_0, values) == expected);
  CHECK(decoded(DType::q8_0, expected)[1] == -127);
  CHECK(decoded(DType::q8_0, expected)[15] == -64);
}

TEST_CASE("a q8_0 scale that is no f16 is rounded, and quants are of the unrounded one", "[weights]") {
  // 1 / 127 = 2^-7 (1 + 8.06 / 1024): 2008. 0.3 * 127 = 38.1.
  auto expected = Bytes{0x08, 0x20, 0x7f, 0x26};
  expected.resize(34);
  CHECK(encoded(DType::q8_0, block_of({1, 0.3f})) == expected);
  CHECK(decoded(DType::q8_0, expected)[0] == 127 * 0x1.02p-7f);
}

TEST_CASE("a q4_0 block is an f16 scale and nibbles, the second half of the block in the high ones", "[weights]") {
  // The extreme is -8, so the scale is 1 and a nibble is the number plus 8, rounded, at most 15.
  std::vector<float> values(32);
  for (int i = 0; i < 16; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i - 8);
  values[16] = 7.6f;   // 16 -> 15
  values[17] = 0.5f;   // 9
  values[18] = -0.5f;  // 8
  values[19] = -7.6f;  // 0
  values[20] = 3.4f;   // 11
  values[31] = -8;     // 0
  const Bytes expected = {0x00, 0x3c, 0xf0, 0x91, 0x82, 0x03, 0xb4, 0x85, 0x86,
                          0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x0f};
  CHECK(encoded(DType::q4_0, values) == expected);
  const std::vector<float> back = decoded(DType::q4_0, expected);
  for (std::size_t i = 0; i < 16; ++i) CHECK(back[i] == values[i]);
  CHECK(back[16] == 7);
  CHECK(back[17] == 1);
  CHECK(back[19] == -8);
  CHECK(back[20] == 3);
}

TEST_CASE("a q4_0 scale has the sign that makes the extreme -8 steps, the first of two", "[weights]") {
  // Extreme 4: scale -0.5 (b800), 4 -> 0, 1 -> 6, and -4 -> 16 -> 15.
  Bytes expected(18, 0x88);
  expected[0] = 0x00;
  expected[1] = 0xb8;
  expected[2] = 0x80;
  expected[3] = 0x86;
  expected[4] = 0x8f;
  CHECK(encoded(DType::q4_0, block_of({4, 1, -4})) == expected);
  CHECK(decoded(DType::q4_0, expected)[2] == -3.5f);
  // Extreme -4, with 4 after it.
  expected[1] = 0x38;
  expected[3] = 0x8a;
  CHECK(encoded(DType::q4_0, block_of({-4, 1, 4})) == expected);
}

TEST_CASE("a block of zeros has the scale that ggml gives it", "[weights]") {
  CHECK(encoded(DType::q8_0, std::vector<float>(32)) == Bytes(34));
  Bytes expected(18, 0x88);
  expected[0] = 0x00;
  expected[1] = 0x80;  // 0 / -8
  CHECK(encoded(DType::q4_0, std::vector<float>(32)) == expected);
  CHECK(encoded(DType::q4_0, std::vector<float>(32, -0.0f)) == expected);
  for (const float value : decoded(DType::q4_0, expected)) CHECK(value == 0);
}

TEST_CASE("quantised blocks of random weights are those of the definition, byte by byte", "[weights]") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<float> values(64);
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 60) - 45);
    for (float& value : values) value = normal(random) * scale;
    // Numbers of few bits, for ties and for equal magnitudes.
    if (i % 4 == 0) {
      for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 65) - 32) * 0.25f;
    }
    for (const DType type : {DType::q8_0, DType::q4_0}) {
      Bytes expected = reference_block(type, values.data());
      const Bytes second = reference_block(type, values.data() + 32);
      expected.insert(expected.end(), second.begin(), second.end());
      if (encoded(type, values) != expected) FAIL(to_string(type) << ", round " << i);
    }
  }
}

TEST_CASE("q8_0 rounds every product as std::round does, next to halves", "[weights]") {
  for (int whole = 0; whole < 127; ++whole) {
    const float half = static_cast<float>(whole) + 0.5f;
    for (const float x : {half, std::nextafter(half, 0.0f), std::nextafter(half, 127.0f)}) {
      const Bytes stored = encoded(DType::q8_0, block_of({127, x, -x}));
      REQUIRE(static_cast<std::int8_t>(stored[3]) == std::lround(x));
      REQUIRE(static_cast<std::int8_t>(stored[4]) == -std::lround(x));
    }
  }
}

TEST_CASE("q4_0 rounds the product before it adds, on processors that could do both at once, too", "[weights]") {
  const Bytes stored = encoded(DType::q4_0, block_of({0x1.02a7e2p-1f, 0x1.a450dp-2f, 0x1.c4a5cep-3f, -0x1.4351d6p-3f}));
  CHECK((stored[2] & 15) == 0);
  CHECK((stored[3] & 15) == 2);   // 1 with a fused multiply-add
  CHECK((stored[4] & 15) == 5);   // 4
  CHECK((stored[5] & 15) == 11);  // 10
}

TEST_CASE("no weight moves further than error_bound says", "[weights]") {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const DType type : all_types) {
    INFO(to_string(type));
    double worst = 0;  // as a part of the bound
    for (int round = 0; round < 20'000; ++round) {
      // From far below the smallest scale to the largest one.
      const float scale = std::ldexp(1.0f, static_cast<int>(random() % 65) - 45);
      std::vector<float> values(32);
      for (float& value : values) value = uniform(random) * scale;
      if (round % 3 == 0) values[7] = -values[5];
      if (check(type, values.data(), 1, 32)) continue;
      const std::vector<float> back = decoded(type, encoded(type, values));
      double largest = 0;
      for (const float value : values) largest = std::max(largest, std::fabs(double{value}));
      for (std::size_t i = 0; i < 32; ++i) {
        const double own = block_elements(type) > 1 ? largest : std::fabs(double{values[i]});
        const double bound = error_bound(type, own);
        const double error = std::fabs(double{back[i]} - double{values[i]});
        if (std::isinf(bound) && std::isinf(back[i])) continue;
        if (!(error <= bound)) FAIL(values[i] << " became " << back[i] << ", bound " << bound);
        if (bound > 0) worst = std::max(worst, error / bound);
      }
    }
    // A bound that nothing comes near would say nothing.
    if (type != DType::f32) CHECK(worst > 0.7);
  }
}

TEST_CASE("error_bound is reached by weights made for it, and infinite past the range", "[weights]") {
  CHECK(error_bound(DType::f32, 1e30) == 0);
  CHECK(error_bound(DType::f16, 0) == 0x1p-25);
  CHECK(double{0x1p-25f} - double{from_f16(to_f16(0x1p-25f))} == error_bound(DType::f16, 0x1p-25));
  CHECK(error_bound(DType::f16, 65519) < 32);
  CHECK(std::isinf(error_bound(DType::f16, 65520)));
  CHECK(std::isinf(error_bound(DType::bf16, 0x1.ffp127)));
  CHECK(std::isinf(error_bound(DType::q8_0, 8321040)));
  CHECK(std::isinf(error_bound(DType::q4_0, 524160)));
  CHECK(std::isinf(error_bound(DType::q4_0, std::numeric_limits<double>::quiet_NaN())));
  // 8 against -8: the grid ends at 7.
  const float moved = decoded(DType::q4_0, encoded(DType::q4_0, block_of({-8, 8})))[1];
  CHECK(moved == 7);
  CHECK(error_bound(DType::q4_0, 8) >= 1);
  CHECK(error_bound(DType::q4_0, 8) < 1.005);
}

TEST_CASE("blocks too small for a scale become zeros", "[weights]") {
  for (const DType type : {DType::q8_0, DType::q4_0}) {
    INFO(to_string(type));
    for (const float tiny : {1e-10f, 1e-37f, 1e-39f, 0x1p-149f}) {
      const auto values = block_of({tiny, -tiny, tiny / 2});
      CHECK_FALSE(check(type, values.data(), 1, 32));
      for (const float value : decoded(type, encoded(type, values))) CHECK(value == 0);
      CHECK(double{tiny} <= error_bound(type, double{tiny}));
      if (tiny > 1e-38f) continue;
      // The scale has no finite inverse: quants as in a block of zeros.
      const std::uint8_t zero = type == DType::q8_0 ? 0x00 : 0x88;
      const Bytes stored = encoded(type, values);
      CHECK(std::count(stored.begin() + 2, stored.end(), zero) == static_cast<std::ptrdiff_t>(stored.size()) - 2);
    }
  }
}

TEST_CASE("rows that are not whole blocks are refused", "[weights]") {
  static_assert(weights::row_ok(DType::f16, 33));
  static_assert(weights::row_ok(DType::q8_0, 64) && weights::row_ok(DType::q4_0, 0));
  static_assert(!weights::row_ok(DType::q8_0, 33) && !weights::row_ok(DType::q4_0, 16));
  const std::vector<float> values(66);
  const Error error = check(DType::q4_0, values.data(), 2, 33);
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(error.message == "q4_0 weights have rows of whole blocks of 32 elements, and 33 is not a multiple of it");
  CHECK(check_stored(DType::q8_0, nullptr, 2, 33).code == Errc::shape_mismatch);
  CHECK_FALSE(check(DType::f16, values.data(), 2, 33));
  CHECK_FALSE(check(DType::q4_0, nullptr, 0, 32));
  CHECK_FALSE(check(DType::q4_0, nullptr, 5, 0));
}

TEST_CASE("NaN and Inf in a quantised block are refused with their position", "[weights]") {
  for (const DType type : {DType::q8_0, DType::q4_0}) {
    INFO(to_string(type));
    for (const float bad : {not_a_number, -not_a_number, inf, -inf}) {
      std::vector<float> values(3 * 64, 1.0f);
      values[2 * 64 + 37] = bad;
      values[2 * 64 + 40] = not_a_number;
      const Error error = check(type, values.data(), 3, 64);
      CHECK(error.code == Errc::invalid_argument);
      CHECK(error.message.find("element [2, 37] is ") != std::string::npos);
      CHECK_FALSE(check(type, values.data(), 2, 64));
      // Encoded all the same, it does not hide.
      const std::vector<float> back = decoded(type, encoded(type, values));
      for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(std::isnan(back[i]) == (i >= 2 * 64 + 32));
    }
  }
  const std::vector<float> values = {not_a_number, inf, -inf, 1e30f};
  CHECK_FALSE(check(DType::f32, values.data(), 1, 4));
  CHECK_FALSE(check(DType::f16, values.data(), 1, 4));
  CHECK_FALSE(check(DType::bf16, values.data(), 1, 4));
}

TEST_CASE("a weight whose scale is no finite f16 is refused, and the one below it is not", "[weights]") {
  const std::pair<DType, float> table[] = {{DType::q8_0, 8321040.0f}, {DType::q4_0, 524160.0f}};
  for (const auto& [type, limit] : table) {
    INFO(to_string(type));
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> values(64, 1.0f);
      values[35] = sign * limit;
      const Error error = check(type, values.data(), 2, 32);
      CHECK(error.code == Errc::invalid_argument);
      CHECK(error.message.find("element [1, 3] is ") != std::string::npos);
      CHECK(error.message.find("below " + std::to_string(static_cast<int>(limit))) != std::string::npos);
      values[35] = sign * std::nextafter(limit, 0.0f);
      CHECK_FALSE(check(type, values.data(), 2, 32));
      const float back = decoded(type, encoded(type, values))[35];
      CHECK(std::fabs(double{back} - double{values[35]}) <= error_bound(type, std::fabs(double{values[35]})));
    }
  }
}

TEST_CASE("stored blocks with a NaN or Inf for a scale are refused with their position", "[weights]") {
  for (const DType type : {DType::q8_0, DType::q4_0}) {
    INFO(to_string(type));
    Bytes stored = encoded(type, std::vector<float>(3 * 64, 1.0f));
    const auto* data = reinterpret_cast<const std::byte*>(stored.data());
    CHECK_FALSE(check_stored(type, data, 3, 64));
    stored[3 * block_bytes(type)] = 0x00;
    stored[3 * block_bytes(type) + 1] = 0xfc;
    const Error error = check_stored(type, data, 3, 64);
    CHECK(error.code == Errc::invalid_argument);
    CHECK(error.message.find("the block at [1, 32] has the scale -inf") != std::string::npos);
    CHECK_FALSE(check_stored(type, data, 1, 64));
  }
}
