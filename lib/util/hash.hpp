// Hashing of 64-bit words. The results go into files: they are the same on every machine and must not change.
#pragma once

#include <cstdint>

namespace brontes::util {

inline constexpr std::uint64_t hash_factor = 0x9e3779b97f4a7c15u;

/// The hash with one more word. A bijection of either.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * hash_factor;
  return hash ^ (hash >> 32);
}

/// The finaliser of MurmurHash3: every bit of the hash reaches every bit of the result.
constexpr std::uint64_t finish(std::uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

class Hash {
 public:
  void add(std::uint64_t value) { hash_ = mix(hash_, value); }
  void add(const char* text) {
    for (; *text != '\0'; ++text) add(static_cast<std::uint64_t>(*text));
    add(std::uint64_t{0});
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 1;
};

}  // namespace brontes::util
