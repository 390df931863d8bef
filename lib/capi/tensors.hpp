// Tensors as numbers: the values of one batch since its last reset, in the order in which they were handed out.
#pragma once

#include <brontes/brontes.h>
#include <brontes/tensor.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace brontes::capi {

/// A number is the table's tag and a place in it. Tags are drawn from one counter, for every batch and every reset, so
/// a number of another batch, or from before a reset, is not taken for one of this table until 2^36 tables later.
///
/// Entries never move: programs read those that were there when they were compiled, while the batch goes on adding to
/// the table in another thread.
class TensorTable {
 public:
  static constexpr unsigned place_bits = 28;
  static constexpr std::uint64_t max_size = std::uint64_t{1} << place_bits;

  TensorTable();

  std::uint64_t tag() const noexcept { return tag_; }
  std::size_t size() const noexcept { return size_; }
  static std::uint64_t tag_of(brontes_tensor number) noexcept { return number >> place_bits; }

  /// Makes room for `count` more; throws std::bad_alloc. False past max_size.
  bool reserve(std::uint64_t count);
  /// Into room that there is.
  brontes_tensor add(const Tensor& tensor) noexcept;
  /// Of the first `size` entries; null for other numbers.
  const Tensor* find(brontes_tensor number, std::size_t size) const noexcept;

  /// A program reads it: it cannot be emptied any more.
  bool shared = false;
  /// Forgets all entries, and takes a new tag.
  void restart() noexcept;

 private:
  static constexpr std::size_t first_chunk = 64;  // each is twice as large as the one before
  static constexpr std::size_t chunk_of(std::size_t place) noexcept {
    return static_cast<std::size_t>(std::bit_width(place / first_chunk + 1)) - 1;
  }
  static constexpr std::size_t start_of(std::size_t chunk) noexcept {
    return first_chunk * ((std::size_t{1} << chunk) - 1);
  }

  std::uint64_t tag_;
  std::size_t size_ = 0;
  std::array<std::unique_ptr<Tensor[]>, 23> chunks_;
};

}  // namespace brontes::capi
