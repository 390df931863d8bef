// Hex, little-endian integers and hashing.
#include "util/bytes.hpp"
#include "util/hash.hpp"
#include "util/hex.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <vector>

using namespace brontes;

TEST_CASE("hex has at least the digits asked for, and all that the value has", "[util]") {
  CHECK(util::hex(0) == "0");
  CHECK(util::hex(0xabcdef) == "abcdef");
  CHECK(util::hex(0x1f, 4) == "001f");
  CHECK(util::hex(0x12345, 4) == "12345");
  CHECK(util::hex(~std::uint64_t{0}, 16) == "ffffffffffffffff");
  CHECK(util::hex(std::array<std::uint8_t, 3>{0, 0x0a, 0xff}) == "000aff");
}

TEST_CASE("integers are written little-endian and read back", "[util]") {
  util::ByteWriter writer;
  writer.u32(0x01020304);
  writer.integer(0x0506, 2);
  writer.bytes(std::array<std::uint8_t, 2>{7, 8});
  writer.u64(0x1112131415161718);
  CHECK(writer.out ==
        std::vector<std::uint8_t>{4, 3, 2, 1, 6, 5, 7, 8, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11});

  util::ByteReader reader(writer.out);
  CHECK(reader.u32() == 0x01020304);
  CHECK(reader.integer(2) == 0x0506);
  CHECK(reader.byte() == 7);
  CHECK(reader.byte() == 8);
  CHECK(reader.u64() == 0x1112131415161718);
}

TEST_CASE("hashes stay what they are in files that exist", "[util]") {
  util::Hash hash;
  hash.add("ab");
  CHECK(hash.value() == util::mix(util::mix(util::mix(1, 'a'), 'b'), 0));
  CHECK(util::mix(0, 1) == 0x9e3779b9e17d05acu);
  CHECK(util::finish(1) == 0xb456bcfc34c2cb2cu);
}
