// Weights as they lie in device memory.
#include "weights/device_layout.hpp"
#include "weights/formats.hpp"
#include "weights/half.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

using namespace brontes;
using weights::device_layout;
using weights::DeviceLayout;

namespace {

constexpr DType all_types[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0};

using Bytes = std::vector<std::byte>;

std::vector<float> random_weights(std::uint64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

Bytes stored_weights(DType type, const std::vector<float>& values, std::uint64_t rows, std::uint64_t columns) {
  Bytes stored(rows * row_bytes(type, columns));
  for (std::uint64_t r = 0; r < rows; ++r) {
    weights::encode(type, values.data() + r * columns, columns, stored.data() + r * row_bytes(type, columns));
  }
  return stored;
}

std::uint32_t word(const Bytes& device, std::uint64_t index) {
  std::uint32_t value = 0;
  std::memcpy(&value, device.data() + index * 4, 4);
  return value;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
         });
}

constexpr std::byte poison{0xa5};

}  // namespace

TEST_CASE("the device layout of each type", "[weights]") {
  static_assert(device_layout(DType::f32, 3, 5) == DeviceLayout{5, 0, 64});
  static_assert(device_layout(DType::f16, 3, 5) == DeviceLayout{4, 0, 48});
  static_assert(device_layout(DType::bf16, 3, 17) == DeviceLayout{12, 0, 144});
  // 3 rows of 96 bytes, then from 512 on 3 rows of 3 halves in 2 words each.
  static_assert(device_layout(DType::q8_0, 3, 96) == DeviceLayout{24, 512, 560});
  static_assert(device_layout(DType::q4_0, 3, 96) == DeviceLayout{12, 256, 304});
  static_assert(device_layout(DType::q4_0, 4096, 4096).total_bytes == 4096 * 4096 / 32 * 18);
  static_assert(device_layout(DType::q8_0, 4096, 4096).total_bytes == 4096 * 4096 / 32 * 34);
  static_assert(device_layout(DType::q8_0, 0, 64).total_bytes == 0);
  static_assert(device_layout(DType::q4_0, 7, 0).total_bytes == 0);
  SUCCEED();
}

TEST_CASE("planes and rows start where wide loads may", "[weights]") {
  for (const DType type : all_types) {
    for (const std::uint64_t rows : {1u, 2u, 3u, 5u, 17u, 64u}) {
      for (std::uint64_t columns = block_elements(type); columns < 300; columns += block_elements(type)) {
        const DeviceLayout layout = device_layout(type, rows, columns);
        INFO(to_string(type) << " " << rows << " x " << columns);
        REQUIRE(layout.total_bytes % 16 == 0);
        REQUIRE(layout.scales_offset % 256 == 0);
        if (type != DType::f32) REQUIRE(layout.row_words % 4 == 0);
        if (block_elements(type) == 1) {
          REQUIRE(layout.row_words * 4 >= row_bytes(type, columns));
          REQUIRE(layout.total_bytes >= rows * layout.row_words * 4);
        } else {
          REQUIRE(layout.scales_offset >= rows * layout.row_words * 4);
          REQUIRE(layout.total_bytes >= layout.scales_offset + (rows + 7) / 8 * 8 * (columns / 32) * 2);
        }
      }
    }
  }
}

TEST_CASE("a size past 64 bits is reported, not wrapped", "[weights]") {
  const std::uint64_t huge = std::uint64_t{1} << 40;
  for (const DType type : all_types) {
    INFO(to_string(type));
    CHECK(device_layout(type, huge, huge).total_bytes == Shape::no_count);
    CHECK(device_layout(type, ~std::uint64_t{0}, 32).total_bytes == Shape::no_count);
    CHECK(device_layout(type, 8, ~std::uint64_t{31}).total_bytes == Shape::no_count);
    CHECK(device_layout(type, huge, 1024).total_bytes < huge * 1024 * 5);
  }
}

TEST_CASE("what is unpacked from the device's copy is what the stored rows decode to", "[weights]") {
  for (const DType type : all_types) {
    const std::uint64_t block = block_elements(type);
    for (const std::uint64_t rows : {1u, 2u, 3u, 7u, 33u}) {
      for (const std::uint64_t blocks : {1u, 2u, 3u, 5u, 8u, 31u, 35u, 67u}) {
        const std::uint64_t columns = blocks * block;
        INFO(to_string(type) << " " << rows << " x " << columns);
        const auto values = random_weights(rows * columns, static_cast<unsigned>(rows * 1000 + blocks));
        const Bytes stored = stored_weights(type, values, rows, columns);
        std::vector<float> expected(values.size());
        weights::decode(type, stored.data(), expected.size(), expected.data());

        const std::uint64_t total = device_layout(type, rows, columns).total_bytes;
        Bytes device(total + 16, poison);
        weights::repack(type, stored.data(), rows, columns, device.data());
        REQUIRE(std::all_of(device.begin() + static_cast<std::ptrdiff_t>(total), device.end(),
                            [](std::byte b) { return b == poison; }));
        std::vector<float> unpacked(values.size());
        weights::unpack(type, device.data(), rows, columns, unpacked.data());
        REQUIRE(same_bits(unpacked, expected));

        Bytes packed(total + 16, poison);
        weights::pack(type, values.data(), rows, columns, packed.data());
        REQUIRE(packed == device);
      }
    }
  }
}

TEST_CASE("repacking keeps every quant and every scale, bit by bit", "[weights]") {
  std::mt19937 random(5);
  constexpr std::uint64_t rows = 19;
  constexpr std::uint64_t columns = 3 * 32;
  for (const DType type : {DType::q8_0, DType::q4_0}) {
    INFO(to_string(type));
    Bytes stored(rows * row_bytes(type, columns));
    for (std::byte& b : stored) b = static_cast<std::byte>(random());  // any scale, NaN too, and any quant
    const DeviceLayout layout = device_layout(type, rows, columns);
    Bytes device(layout.total_bytes, poison);
    weights::repack(type, stored.data(), rows, columns, device.data());
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (std::uint64_t k = 0; k < columns; ++k) {
        const std::uint64_t b = k / 32;
        const std::uint64_t i = k % 32;
        const std::byte* block = stored.data() + r * row_bytes(type, columns) + b * block_bytes(type);
        const auto byte = [block](std::uint64_t at) { return std::to_integer<std::uint32_t>(block[at]); };
        if (type == DType::q8_0) {
          REQUIRE((word(device, r * layout.row_words + k / 4) >> 8 * (k % 4) & 255u) == byte(2 + i));
        } else {
          REQUIRE((word(device, r * layout.row_words + b * 4 + i % 16 / 4) >> (i % 4 * 8 + i / 16 * 4) & 15u) ==
                  (i < 16 ? byte(2 + i) & 15u : byte(2 + i - 16) >> 4));
        }
        const std::uint64_t at = layout.scales_offset / 4 + (r / 8 * (columns / 32) + b) * 4 + r % 8 / 2;
        REQUIRE((word(device, at) >> 16 * (r % 2) & 0xffffu) == (byte(0) | byte(1) << 8));
      }
    }
  }
}

TEST_CASE(
    "a q4_0 word holds four elements in the low nibbles of its bytes, and the four 16 further on in the high ones",
    "[weights]") {
  std::vector<float> values(32);
  for (std::size_t i = 0; i < 32; ++i) values[i] = static_cast<float>(i % 16) - 8;
  const Bytes stored = stored_weights(DType::q4_0, values, 1, 32);
  Bytes device(device_layout(DType::q4_0, 1, 32).total_bytes);
  weights::repack(DType::q4_0, stored.data(), 1, 32, device.data());
  CHECK(word(device, 0) == 0x33221100);
  CHECK(word(device, 1) == 0x77665544);
  CHECK(word(device, 2) == 0xbbaa9988);
  CHECK(word(device, 3) == 0xffeeddcc);
  CHECK(word(device, 256 / 4) == 0x3c00);
}

TEST_CASE("what lies between rows and planes is zero", "[weights]") {
  for (const DType type : all_types) {
    INFO(to_string(type));
    const std::uint64_t rows = 3;
    const std::uint64_t columns = 3 * block_elements(type);
    const DeviceLayout layout = device_layout(type, rows, columns);
    // Stored as all ones, so whatever is not written as data shows.
    const Bytes stored(rows * row_bytes(type, columns), std::byte{0xff});
    Bytes device(layout.total_bytes, poison);
    weights::repack(type, stored.data(), rows, columns, device.data());
    const auto ones = std::count(device.begin(), device.end(), std::byte{0xff});
    const auto zeros = std::count(device.begin(), device.end(), std::byte{0});
    CHECK(static_cast<std::uint64_t>(ones) == stored.size());
    CHECK(static_cast<std::uint64_t>(ones + zeros) == device.size());
  }
}

TEST_CASE("no rows and no columns pack to nothing", "[weights]") {
  for (const DType type : all_types) {
    std::byte nothing{poison};
    weights::repack(type, nullptr, 0, 32, &nothing);
    weights::repack(type, nullptr, 3, 0, &nothing);
    weights::pack(type, nullptr, 0, 32, &nothing);
    weights::pack(type, nullptr, 3, 0, &nothing);
    CHECK(nothing == poison);
  }
}
