#include "spirv/words.hpp"

#include <algorithm>
#include <cassert>

namespace brontes::spirv {
namespace {

// That a bit is 0. It follows the bits that are read with it.
struct Probability {
  std::uint16_t of_2048 = 1024;
};

class RangeDecoder {
 public:
  explicit RangeDecoder(kernels::View<std::uint8_t> packed) noexcept : next_(packed.begin()), end_(packed.end()) {
    byte();  // always 0
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | byte();
  }

  // Whether it read past the end, where it finds nothing but zeros.
  bool overran() const noexcept { return overran_; }

  std::uint32_t bit(Probability& zero) noexcept {
    refill();
    const std::uint32_t p = zero.of_2048;
    const std::uint32_t bound = (range_ >> 11) * p;
    if (code_ < bound) {
      range_ = bound;
      zero.of_2048 = static_cast<std::uint16_t>(p + ((2048 - p) >> 5));
      return 0;
    }
    range_ -= bound;
    code_ -= bound;
    zero.of_2048 = static_cast<std::uint16_t>(p - (p >> 5));
    return 1;
  }

  // Bits of which either value is as likely, the highest first.
  std::uint32_t even_bits(std::uint32_t count) noexcept {
    std::uint32_t value = 0;
    for (; count != 0; --count) {
      refill();
      range_ >>= 1;
      const bool one = code_ >= range_;
      if (one) code_ -= range_;
      value = value << 1 | (one ? 1 : 0);
    }
    return value;
  }

  // A number of `count` bits, the highest first; tree[1 .. 2^count) has a probability for every prefix.
  std::uint32_t number(Probability* tree, std::uint32_t count) noexcept {
    std::uint32_t prefix = 1;
    for (std::uint32_t i = 0; i < count; ++i) prefix = prefix << 1 | bit(tree[prefix]);
    return prefix - (1u << count);
  }

  // The same, the lowest bit first.
  std::uint32_t reversed(Probability* tree, std::uint32_t count) noexcept {
    std::uint32_t prefix = 1;
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t b = bit(tree[prefix]);
      prefix = prefix << 1 | b;
      value |= b << i;
    }
    return value;
  }

 private:
  std::uint32_t byte() noexcept {
    if (next_ != end_) return *next_++;
    overran_ = true;
    return 0;
  }
  void refill() noexcept {
    if (range_ >= 1u << 24) return;
    range_ <<= 8;
    code_ = code_ << 8 | byte();
  }

  const std::uint8_t* next_;
  const std::uint8_t* end_;
  std::uint32_t range_ = 0xffffffff;
  std::uint32_t code_ = 0;
  bool overran_ = false;
};

// LZMA: the bytes are literals and copies of what was written before, and which of these comes next is read with
// probabilities by what came last (State) and by the position within a word.
class Unpacker {
 public:
  Unpacker(kernels::View<std::uint8_t> packed, std::uint8_t* out, std::size_t size) noexcept
      : in_(packed), out_(out), size_(size) {}

  bool run() noexcept {
    while (at_ != size_) {
      const std::size_t position = at_ % positions;
      if (in_.bit(p_.is_copy[state_][position]) == 0) {
        literal();
        continue;
      }
      std::size_t length = 0;
      if (in_.bit(p_.is_repeat[state_]) == 0) {
        length = read_length(p_.length, position);
        const std::uint32_t distance = read_distance(length);
        std::copy_backward(distances_, distances_ + 3, distances_ + 4);
        distances_[0] = distance;
        state_ = state_ < after_copy ? 7 : 10;
      } else if (recall(position)) {
        length = read_length(p_.repeat_length, position);
        state_ = state_ < after_copy ? 8 : 11;
      } else {
        length = 1;
        state_ = state_ < after_copy ? 9 : 11;
      }
      if (!copy(length) || in_.overran()) return false;
    }
    return !in_.overran();
  }

 private:
  static constexpr std::size_t positions = 4;
  static constexpr std::uint32_t after_copy = 7;  // states from here on: the last was a copy
  static constexpr std::size_t shortest = 2;

  struct Length {
    Probability is_long, is_longer;
    Probability low[positions][8], middle[positions][8], high[256];
  };
  struct Probabilities {
    Probability is_copy[12][positions], is_repeat[12];
    Probability is_older[12], is_oldest[12][2], is_whole[12][positions];
    Probability literal[positions][0x300];
    Length length, repeat_length;
    Probability slot[4][64], distance[128], distance_end[16];
  };

  void literal() noexcept {
    Probability* tree = p_.literal[at_ % positions];
    std::uint32_t value = 1;
    if (state_ >= after_copy) {
      // The copy ended because this byte differs from the one that would have followed.
      const std::uint32_t other = distances_[0] < at_ ? out_[at_ - distances_[0] - 1] : 0;
      for (std::uint32_t shift = 8; shift-- != 0;) {
        const std::uint32_t expected = other >> shift & 1;
        const std::uint32_t b = in_.bit(tree[((1 + expected) << 8) + value]);
        value = value << 1 | b;
        if (b != expected) break;
      }
    }
    while (value < 0x100) value = value << 1 | in_.bit(tree[value]);
    out_[at_++] = static_cast<std::uint8_t>(value);
    state_ = state_ < 4 ? 0 : state_ < 10 ? state_ - 3 : state_ - 6;
  }

  // Takes one of the last four distances; false: for a single byte.
  bool recall(std::size_t position) noexcept {
    if (in_.bit(p_.is_older[state_]) == 0) return in_.bit(p_.is_whole[state_][position]) != 0;
    std::size_t which = 1;
    if (in_.bit(p_.is_oldest[state_][0]) != 0) which = 2 + in_.bit(p_.is_oldest[state_][1]);
    std::rotate(distances_, distances_ + which, distances_ + which + 1);
    return true;
  }

  std::size_t read_length(Length& p, std::size_t position) noexcept {
    if (in_.bit(p.is_long) == 0) return shortest + in_.number(p.low[position], 3);
    if (in_.bit(p.is_longer) == 0) return shortest + 8 + in_.number(p.middle[position], 3);
    return shortest + 16 + in_.number(p.high, 8);
  }

  // Less one. The slot has the number of its bits and the highest two.
  std::uint32_t read_distance(std::size_t length) noexcept {
    const std::uint32_t slot = in_.number(p_.slot[std::min<std::size_t>(length - shortest, 3)], 6);
    if (slot < 4) return slot;
    const std::uint32_t count = (slot >> 1) - 1;
    const std::uint32_t high = (2 | (slot & 1)) << count;
    if (slot < 14) return high + in_.reversed(p_.distance + high - slot, count);
    const std::uint32_t middle = in_.even_bits(count - 4) << 4;
    return high + middle + in_.reversed(p_.distance_end, 4);
  }

  bool copy(std::size_t length) noexcept {
    if (distances_[0] >= at_ || length > size_ - at_) return false;
    // Byte by byte: the copy may overlap what it is copied from.
    const std::uint8_t* from = out_ + at_ - distances_[0] - 1;
    for (std::uint8_t *to = out_ + at_, *end = to + length; to != end;) *to++ = *from++;
    at_ += length;
    return true;
  }

  RangeDecoder in_;
  std::uint8_t* out_;
  std::size_t size_;
  std::size_t at_ = 0;
  std::uint32_t state_ = 0;
  std::uint32_t distances_[4] = {};
  Probabilities p_;
};

}  // namespace

bool unpack(kernels::View<std::uint8_t> packed, std::uint8_t* out, std::size_t size) noexcept {
  return Unpacker(packed, out, size).run();
}

std::vector<std::uint32_t> words(const kernels::Kernel& kernel, kernels::AccessMode mode) {
  const kernels::View<std::uint32_t>& module = kernel.words(mode);
  if (module.size == 0 || module.data != nullptr) return {module.begin(), module.end()};

  assert(kernels::Ref(kernel).is_library());
  const auto id = static_cast<kernels::Id>(kernels::Ref(kernel).index());
  std::vector<std::uint32_t> words(module.size);
  std::vector<std::uint8_t> bytes(module.size * sizeof(std::uint32_t));
  const bool whole = unpack(kernels::packed(id, mode), bytes.data(), bytes.size());
  assert(whole && "the library's own data");
  static_cast<void>(whole);
  // Stored lowest byte first, whatever this machine has.
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint8_t* b = bytes.data() + i * sizeof(std::uint32_t);
    words[i] = b[0] | std::uint32_t{b[1]} << 8 | std::uint32_t{b[2]} << 16 | std::uint32_t{b[3]} << 24;
  }
  return words;
}

}  // namespace brontes::spirv
