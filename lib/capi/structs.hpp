// Structs that begin with their size, and strings and lists that cross the border.
#pragma once

#include "capi/status.hpp"

#include <brontes/batch.hpp>
#include <brontes/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

namespace brontes::capi {

/// No struct of ours comes near this; a larger size was never set.
inline constexpr std::size_t largest_struct = 4096;

template <class Struct>
Error check_size(const char* call, const char* name, const Struct* given) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_size) == 0);
  if (given->struct_size < sizeof(std::size_t) || given->struct_size > largest_struct) {
    return Error(Errc::invalid_argument, std::string(call) + ": struct_size of " + name + " is " +
                                             std::to_string(given->struct_size) + "; set it to sizeof(" + name + ")");
  }
  return {};
}

/// A copy of the caller's options, which may be null, shorter or longer than ours: what is missing is 0, and what we do
/// not know must be.
template <class Struct>
Error read_struct(const char* call, const char* name, const Struct* given, Struct& to) {
  to = Struct{};
  if (given == nullptr) return {};
  if (Error e = check_size(call, name, given)) return e;
  const std::size_t size = given->struct_size;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(Struct) &&
      std::any_of(bytes + sizeof(Struct), bytes + size, [](unsigned char b) { return b != 0; })) {
    return Error(Errc::unsupported, std::string(call) + ": " + name +
                                        " has members that this version of the library does not know, and they are "
                                        "not 0");
  }
  std::memcpy(&to, given, std::min(size, sizeof(Struct)));
  return {};
}

/// Fills the caller's struct as far as it goes; struct_size stays.
template <class Struct>
Error write_struct(const char* call, const char* name, Struct from, Struct* to) {
  if (to == nullptr) return invalid(call, "a null pointer where the result goes");
  if (Error e = check_size(call, name, to)) return e;
  const std::size_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(to, &from, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct))
    std::memset(reinterpret_cast<unsigned char*>(to) + sizeof(Struct), 0, size - sizeof(Struct));
  return {};
}

inline std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

/// For brontes_free().
inline void* copy_bytes(const void* bytes, std::size_t count) {
  void* const copy = std::malloc(std::max<std::size_t>(count, 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (count != 0) std::memcpy(copy, bytes, count);
  return copy;
}
inline char* copy_text(const std::string& text) {
  return static_cast<char*>(copy_bytes(text.c_str(), text.size() + 1));
}

/// Two strings, both or none; either may be unwanted.
inline void copy_texts(const std::string& a, char** to_a, const std::string& b, char** to_b) {
  char* const first = to_a == nullptr ? nullptr : copy_text(a);
  try {
    if (to_b != nullptr) *to_b = copy_text(b);
  } catch (...) {
    std::free(first);
    throw;
  }
  if (to_a != nullptr) *to_a = first;
}

/// Reads no more extents than it takes to see that there are too many.
inline Error shape_of(const char* call, const std::uint64_t* dims, std::size_t rank, Shape& to) {
  to = Shape();
  if (rank == 0) return {};
  if (dims == nullptr) return null_data(call, "the extents of a shape");
  to = Shape::of({dims, std::min(rank, Shape::max_rank + 1)});
  return {};
}

/// Returns the rank.
inline std::size_t write_shape(const Shape& shape, std::uint64_t* dims) noexcept {
  for (std::size_t i = 0; dims != nullptr && i < shape.rank(); ++i) dims[i] = shape[i];
  return shape.rank();
}

inline Error axes_of(const char* call, const std::int64_t* axes, std::size_t count, Axes& to) {
  to = Axes();
  if (count == 0) return {};
  if (axes == nullptr) return null_data(call, "axes");
  to = Axes(Span<const std::int64_t>(axes, std::min(count, Axes::max_size + 1)));
  return {};
}

/// One per dim, and one too many where there are more.
struct Ranges {
  std::array<Range, Shape::max_rank + 1> items{};
  std::size_t count = 0;
  Span<const Range> span() const noexcept { return {items.data(), count}; }
};

inline Error ranges_of(const char* call, const brontes_range* ranges, std::size_t count, Ranges& to) {
  if (count != 0 && ranges == nullptr) return null_data(call, "ranges");
  to.count = std::min(count, to.items.size());
  for (std::size_t i = 0; i < to.count; ++i) to.items[i] = {ranges[i].begin, ranges[i].end, ranges[i].step};
  return {};
}

brontes_batch_stats to_c(const BatchStats& stats) noexcept;
brontes_memory_needs to_c(const MemoryNeeds& needs) noexcept;

/// A pointer to a struct from its caller, by its name.
#define BRONTES_STRUCT(call, type, ...) ::brontes::capi::read_struct<type>(call, #type, __VA_ARGS__)
#define BRONTES_RESULT(call, type, ...) ::brontes::capi::write_struct<type>(call, #type, __VA_ARGS__)

// A member that is added must not lie in what was padding: old programs have set their struct_size to include that.
#define BRONTES_FULL(type, last)                                                                           \
  static_assert(sizeof(void*) != 8 || sizeof(type) == offsetof(type, last) + sizeof(decltype(type::last)), \
                #type " ends with padding: add a reserved member")
BRONTES_FULL(brontes_simulated_limits, uncached_memory);
BRONTES_FULL(brontes_device_options, pipeline_cache_data);
BRONTES_FULL(brontes_device_info, reserved);
BRONTES_FULL(brontes_device_stats, live_bytes);
BRONTES_FULL(brontes_device_memory, budget_reported);
BRONTES_FULL(brontes_memory_needs, table_bytes);
BRONTES_FULL(brontes_kernel_options, update_count);
BRONTES_FULL(brontes_kernel_binding, access);
BRONTES_FULL(brontes_kernel_info, reserved);
BRONTES_FULL(brontes_profile_options, max_bytes);
BRONTES_FULL(brontes_batch_options, precision);
BRONTES_FULL(brontes_prepare_options, user_data);
BRONTES_FULL(brontes_prepared, created);
BRONTES_FULL(brontes_matmul_shape, precision);
BRONTES_FULL(brontes_tune_options, user_data);
BRONTES_FULL(brontes_tune_report, saved);
BRONTES_FULL(brontes_batch_stats, fused_programs);
BRONTES_FULL(brontes_matmul_options, precision);
BRONTES_FULL(brontes_matmul_choice, reserved);
BRONTES_FULL(brontes_matmul_epilogue, no_bias);
BRONTES_FULL(brontes_matmul_cache_options, precision);
BRONTES_FULL(brontes_cached_weight_info, bias);

}  // namespace brontes::capi
