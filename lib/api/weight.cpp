#include <brontes/weight.hpp>

#include "api/access.hpp"
#include "submit/transfer.hpp"
#include "weights/device_layout.hpp"
#include "weights/formats.hpp"

#include <algorithm>
#include <new>
#include <string>

namespace brontes {
namespace {

// Rows whose device copy one binding can hold.
std::uint64_t rows_per_part(DType type, std::uint64_t rows, std::uint64_t columns, std::uint64_t most_bytes) {
  auto fits = [&](std::uint64_t count) {
    return weights::device_layout(type, count, columns).total_bytes <= most_bytes;
  };
  if (fits(rows)) return rows;
  std::uint64_t low = 0;
  std::uint64_t high = rows;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  // Kernels take several rows at once.
  return low > 64 ? low / 64 * 64 : low;
}

}  // namespace

Weight::Weight() noexcept = default;
Weight::Weight(Weight&&) noexcept = default;
Weight& Weight::operator=(Weight&&) noexcept = default;
Weight::~Weight() = default;

std::uint64_t Weight::bytes() const noexcept {
  std::uint64_t total = 0;
  for (const auto& part : parts_) total += part->bytes();
  return total;
}

// `pack` writes the device's copy of `count` rows from row `first` on.
template <class Pack>
Result<Weight> WeightAccess::make(const char* call, const Device& device, std::uint64_t rows, std::uint64_t columns,
                                  DType type, Pack pack) {
  const auto context = DeviceAccess::context(device);
  if (!context) return Error(Errc::invalid_argument, std::string(call) + ": the Device has been moved from");
  Weight self;
  self.rows_ = rows;
  self.columns_ = columns;
  self.type_ = type;
  const std::uint64_t most = DeviceAccess::engine(device)->traits().max_storage_range;
  self.part_rows_ = std::max<std::uint64_t>(1, rows_per_part(type, rows, columns, most));
  for (std::uint64_t first = 0; first < std::max<std::uint64_t>(rows, 1); first += self.part_rows_) {
    const std::uint64_t count = std::min(self.part_rows_, rows - first);
    const std::uint64_t bytes = weights::device_layout(type, count, columns).total_bytes;
    if (bytes > most) {
      return Error(Errc::limit_exceeded, std::string(call) + ": a row of " + std::to_string(columns) + " " +
                                             to_string(type) + " weights is past this device's " +
                                             std::to_string(most) + " bytes (maxStorageBufferRange)");
    }
    auto memory = context->memory().allocate(context, bytes, vk::MemoryUse::device, "brontes weight");
    if (!memory) return memory.error();
    if (std::byte* mapped = (*memory)->mapped(); mapped != nullptr) {
      pack(first, count, mapped);
      if (Error e = (*memory)->flush(bytes)) return e;
    } else if (bytes != 0) {
      const std::unique_ptr<std::byte[]> staged(new (std::nothrow) std::byte[bytes]);
      if (!staged) {
        return Error(Errc::out_of_memory,
                     std::string(call) + ": no host memory for " + std::to_string(bytes) + " bytes");
      }
      pack(first, count, staged.get());
      if (Error e = submit::write(**memory, 0, staged.get(), bytes)) return e;
    }
    self.parts_.push_back(std::move(*memory));
  }
  return self;
}

namespace {

Error check_sizes(const char* call, const void* data, std::uint64_t given, std::uint64_t rows, std::uint64_t columns,
                  DType type, std::uint64_t per_row, const char* unit) {
  const Shape shape(rows, columns);
  if (type == DType::i32 || type == DType::mask) {
    return Error(Errc::invalid_argument, std::string(call) + ": weights are not stored as " + to_string(type));
  }
  if (shape.count() == Shape::no_count || shape.count() > Shape::no_count / 8) {
    return Error(Errc::size_overflow, std::string(call) + ": the size of " + to_string(shape) + " is beyond reason");
  }
  if (!weights::row_ok(type, columns)) {
    return Error(Errc::shape_mismatch, std::string(call) + ": rows of " + std::to_string(columns) + " are not whole " +
                                           to_string(type) + " blocks of " + std::to_string(block_elements(type)));
  }
  if (given != rows * per_row) {
    return Error(Errc::shape_mismatch, std::string(call) + ": " + std::to_string(given) + " " + unit +
                                           " for a weight of " + to_string(shape) + ", which takes " +
                                           std::to_string(rows * per_row));
  }
  if (data == nullptr && given != 0) {
    return Error(Errc::null_data, std::string(call) + ": a null pointer for " + std::to_string(given) + " " + unit);
  }
  return {};
}

// [rows, columns] to [columns, rows], in blocks that stay in the cache.
void transpose(const float* in, std::uint64_t rows, std::uint64_t columns, float* out) {
  constexpr std::uint64_t block = 32;
  for (std::uint64_t i = 0; i < rows; i += block) {
    for (std::uint64_t j = 0; j < columns; j += block) {
      for (std::uint64_t y = i; y < std::min(i + block, rows); ++y) {
        for (std::uint64_t x = j; x < std::min(j + block, columns); ++x) out[x * rows + y] = in[y * columns + x];
      }
    }
  }
}

Error with_call(const char* call, Error e) {
  e.message = std::string(call) + ": " + e.message;
  return e;
}

}  // namespace

Result<Weight> WeightAccess::convert(const char* call, const Device& device, const float* data, std::uint64_t rows,
                                     std::uint64_t columns, DType type) {
  if (Error e = weights::check(type, data, rows, columns)) return with_call(call, std::move(e));
  return make(call, device, rows, columns, type, [&](std::uint64_t first, std::uint64_t count, std::byte* out) {
    weights::pack(type, data + first * columns, count, columns, out);
  });
}

Result<Weight> Weight::from(const Device& device, Span<const float> data, std::uint64_t rows, std::uint64_t columns,
                            DType type) {
  constexpr const char* call = "Weight::from";
  return guarded(call, [&]() -> Result<Weight> {
    if (Error e = check_sizes(call, data.data(), data.size(), rows, columns, type, columns, "elements")) return e;
    return WeightAccess::convert(call, device, data.data(), rows, columns, type);
  });
}

Result<Weight> Weight::from_transposed(const Device& device, Span<const float> data, std::uint64_t rows,
                                       std::uint64_t columns, DType type) {
  constexpr const char* call = "Weight::from_transposed";
  return guarded(call, [&]() -> Result<Weight> {
    if (Error e = check_sizes(call, data.data(), data.size(), rows, columns, type, columns, "elements")) return e;
    const std::unique_ptr<float[]> turned(new (std::nothrow) float[data.size()]);
    if (!turned) {
      return Error(Errc::out_of_memory,
                   std::string(call) + ": no host memory to transpose " + std::to_string(data.size()) + " elements");
    }
    transpose(data.data(), columns, rows, turned.get());
    return WeightAccess::convert(call, device, turned.get(), rows, columns, type);
  });
}

Result<Weight> Weight::from_stored(const Device& device, Span<const std::byte> data, std::uint64_t rows,
                                   std::uint64_t columns, DType type) {
  constexpr const char* call = "Weight::from_stored";
  return guarded(call, [&]() -> Result<Weight> {
    const std::uint64_t per_row = row_bytes(type, columns);
    if (Error e = check_sizes(call, data.data(), data.size(), rows, columns, type, per_row, "bytes")) return e;
    if (Error e = weights::check_stored(type, data.data(), rows, columns)) return with_call(call, std::move(e));
    return WeightAccess::make(call, device, rows, columns, type,
                              [&](std::uint64_t first, std::uint64_t count, std::byte* out) {
                                weights::repack(type, data.data() + first * per_row, count, columns, out);
                              });
  });
}

}  // namespace brontes
