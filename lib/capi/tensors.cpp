#include "capi/tensors.hpp"

#include <atomic>

namespace brontes::capi {
namespace {

std::uint64_t next_tag() noexcept {
  static std::atomic<std::uint64_t> last{0};
  constexpr std::uint64_t mask = (std::uint64_t{1} << (64 - TensorTable::place_bits)) - 1;
  std::uint64_t tag = 0;
  // 0 would make BRONTES_NO_TENSOR a tensor.
  while (tag == 0) tag = ++last & mask;
  return tag;
}

}  // namespace

TensorTable::TensorTable() : tag_(next_tag()) {}

bool TensorTable::reserve(std::uint64_t count) {
  static_assert(chunk_of(max_size - 1) + 1 == std::tuple_size_v<decltype(chunks_)>);
  if (count > max_size - size_) return false;
  if (count == 0) return true;
  const std::size_t last = chunk_of(size_ + static_cast<std::size_t>(count) - 1);
  for (std::size_t chunk = chunk_of(size_); chunk <= last; ++chunk) {
    if (!chunks_[chunk]) chunks_[chunk] = std::make_unique<Tensor[]>(first_chunk << chunk);
  }
  return true;
}

brontes_tensor TensorTable::add(const Tensor& tensor) noexcept {
  const std::size_t chunk = chunk_of(size_);
  chunks_[chunk][size_ - start_of(chunk)] = tensor;
  return tag_ << place_bits | size_++;
}

const Tensor* TensorTable::find(brontes_tensor number, std::size_t size) const noexcept {
  const auto place = static_cast<std::size_t>(number & (max_size - 1));
  if (tag_of(number) != tag_ || place >= size) return nullptr;
  const std::size_t chunk = chunk_of(place);
  return &chunks_[chunk][place - start_of(chunk)];
}

void TensorTable::restart() noexcept {
  tag_ = next_tag();
  size_ = 0;
}

}  // namespace brontes::capi
