// Objects set aside for later.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace brontes::vk {

/// A list of owned objects, oldest first. They are linked through their own member `std::unique_ptr<T> next`, so
/// setting one aside takes no memory and cannot fail: destructors do it.
template <class T>
class Shelf {
 public:
  Shelf() = default;
  ~Shelf() { clear(); }
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  std::size_t size() const noexcept { return size_; }
  /// The oldest. The shelf must not be empty.
  const T& front() const noexcept { return *first_; }

  void put(std::unique_ptr<T> object) noexcept {
    *end_ = std::move(object);
    end_ = &(*end_)->next;
    ++size_;
  }

  /// The oldest that fits, or null.
  template <class Fits>
  std::unique_ptr<T> take(Fits fits) {
    for (std::unique_ptr<T>* link = &first_; *link; link = &(*link)->next) {
      if (fits(std::as_const(**link))) return unlink(*link);
    }
    return nullptr;
  }

  // One by one: a chain of unique_ptr would destroy itself recursively.
  void clear() noexcept {
    while (first_) unlink(first_);
  }

 private:
  std::unique_ptr<T> unlink(std::unique_ptr<T>& link) noexcept {
    std::unique_ptr<T> object = std::move(link);
    link = std::move(object->next);
    if (!link) end_ = &link;
    --size_;
    return object;
  }

  std::unique_ptr<T> first_;
  std::unique_ptr<T>* end_ = &first_;
  std::size_t size_ = 0;
};

}  // namespace brontes::vk
