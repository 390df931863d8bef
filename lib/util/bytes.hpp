// Integers as bytes, little-endian on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace brontes::util {

class ByteWriter {
 public:
  void integer(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void u32(std::uint32_t value) { integer(value, 4); }
  void u64(std::uint64_t value) { integer(value, 8); }
  void bytes(std::span<const std::uint8_t> from) { out.insert(out.end(), from.begin(), from.end()); }

  std::vector<std::uint8_t> out;
};

/// The caller has checked that there are enough bytes.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> in) : in_(in) {}

  std::uint64_t integer(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{in_[at_++]} << (8 * i);
    return value;
  }
  std::uint8_t byte() { return in_[at_++]; }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  void bytes(std::span<std::uint8_t> to) {
    for (std::uint8_t& byte : to) byte = in_[at_++];
  }

 private:
  std::span<const std::uint8_t> in_;
  std::size_t at_ = 0;
};

}  // namespace brontes::util
