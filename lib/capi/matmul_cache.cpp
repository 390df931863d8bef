#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/matmul.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace {

/// A call on a weight of the cache, by its name.
template <class Cache, class Body>
brontes_status named(const char* call, Cache* cache, const char* name, brontes_error* error, Body body) {
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, cache, "matmul cache")) return e;
    if (name == nullptr) return null_data(call, "a name");
    return body(cache->cache, name);
  });
}

template <class Cache, class Body>
brontes_status upload(const char* call, Cache* cache, const char* name, brontes_dtype dtype, brontes_error* error,
                      Body body) {
  return named(call, cache, name, error, [&](MatmulCache& to, const char* as) -> Error {
    DType type = DType::f32;
    if (Error e = set(type, dtype, call, "brontes_dtype")) return e;
    return body(to, as, type);
  });
}

Span<const std::byte> stored(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

brontes_status brontes_matmul_cache_create(const brontes_device* device, const brontes_matmul_cache_options* options,
                                           brontes_matmul_cache** cache, brontes_error* error) {
  const char* const call = __func__;
  return make(call, cache, error, [&](brontes_matmul_cache*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    brontes_matmul_cache_options given;
    if (Error e = BRONTES_STRUCT(call, brontes_matmul_cache_options, options, given)) return e;
    MatmulCacheOptions making;
    if (given.max_programs != 0) making.max_programs = static_cast<std::size_t>(given.max_programs);
    if (Error e = set(making.kernel, given.kernel, call, "brontes_matmul_kernel")) return e;
    if (Error e = set(making.precision, given.precision, call, "brontes_precision")) return e;
    out = new brontes_matmul_cache(device->device, making);
    return {};
  });
}

void brontes_matmul_cache_destroy(brontes_matmul_cache* cache) { destroy(cache); }

brontes_status brontes_matmul_cache_upload_weight(brontes_matmul_cache* cache, const char* name, const float* data,
                                                  size_t count, uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                                  const float* bias, size_t bias_count, brontes_error* error) {
  return upload(__func__, cache, name, dtype, error, [&](MatmulCache& to, const char* as, DType type) {
    return to.upload_weight(as, {data, count}, rows, columns, type, {bias, bias_count});
  });
}

brontes_status brontes_matmul_cache_upload_stored(brontes_matmul_cache* cache, const char* name, const void* data,
                                                  size_t bytes, uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                                  const float* bias, size_t bias_count, brontes_error* error) {
  return upload(__func__, cache, name, dtype, error, [&](MatmulCache& to, const char* as, DType type) {
    return to.upload_stored(as, stored(data, bytes), rows, columns, type, {bias, bias_count});
  });
}

brontes_status brontes_matmul_cache_replace_weight(brontes_matmul_cache* cache, const char* name, const float* data,
                                                   size_t count, uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                                   const float* bias, size_t bias_count, brontes_error* error) {
  return upload(__func__, cache, name, dtype, error, [&](MatmulCache& to, const char* as, DType type) {
    return to.replace_weight(as, {data, count}, rows, columns, type, {bias, bias_count});
  });
}

brontes_status brontes_matmul_cache_replace_stored(brontes_matmul_cache* cache, const char* name, const void* data,
                                                   size_t bytes, uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                                   const float* bias, size_t bias_count, brontes_error* error) {
  return upload(__func__, cache, name, dtype, error, [&](MatmulCache& to, const char* as, DType type) {
    return to.replace_stored(as, stored(data, bytes), rows, columns, type, {bias, bias_count});
  });
}

brontes_status brontes_matmul_cache_evict(brontes_matmul_cache* cache, const char* name, brontes_error* error) {
  const char* const call = __func__;
  return named(call, cache, name, error, [&](MatmulCache& from, const char* which) -> Error {
    if (from.evict(which)) return {};
    return Error(Errc::not_found, std::string(call) + ": no weight \"" + which + "\"");
  });
}

brontes_status brontes_matmul_cache_clear(brontes_matmul_cache* cache, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, cache, "matmul cache")) return e;
    cache->cache.clear();
    return {};
  });
}

int brontes_matmul_cache_contains(const brontes_matmul_cache* cache, const char* name) {
  if (!is(cache) || name == nullptr) return 0;
  int found = 0;
  static_cast<void>(caught(__func__, [&]() -> Error {
    found = cache->cache.contains(name) ? 1 : 0;
    return {};
  }));
  return found;
}

size_t brontes_matmul_cache_weight_count(const brontes_matmul_cache* cache) {
  return is(cache) ? cache->cache.weight_count() : 0;
}

uint64_t brontes_matmul_cache_weight_bytes(const brontes_matmul_cache* cache) {
  return is(cache) ? cache->cache.weight_bytes() : 0;
}

brontes_status brontes_matmul_cache_names(const brontes_matmul_cache* cache, char*** names, size_t* count,
                                          brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, cache, "matmul cache")) return e;
    if (names == nullptr || count == nullptr) return invalid(call, "a null pointer where the names go");
    const std::vector<std::string> known = cache->cache.names();
    // The pointers, one null, and the texts: one block.
    std::size_t bytes = (known.size() + 1) * sizeof(char*);
    const std::size_t texts = bytes;
    for (const std::string& name : known) bytes += name.size() + 1;
    void* const block = std::malloc(bytes);
    if (block == nullptr) throw std::bad_alloc();
    auto** const pointers = static_cast<char**>(block);
    char* text = static_cast<char*>(block) + texts;
    for (std::size_t i = 0; i < known.size(); ++i) {
      pointers[i] = text;
      std::memcpy(text, known[i].c_str(), known[i].size() + 1);
      text += known[i].size() + 1;
    }
    pointers[known.size()] = nullptr;
    *names = pointers;
    *count = known.size();
    return {};
  });
}

brontes_status brontes_matmul_cache_get_info(const brontes_matmul_cache* cache, const char* name,
                                             brontes_cached_weight_info* info, brontes_error* error) {
  const char* const call = __func__;
  return named(call, cache, name, error, [&](const MatmulCache& of, const char* which) -> Error {
    const auto found = of.info(which);
    if (!found) return found.error();
    brontes_cached_weight_info to{};
    to.rows = found->shape[0];
    to.columns = found->shape[1];
    to.bytes = found->bytes;
    to.parts = found->parts;
    to.dtype = to_c(found->dtype);
    to.bias = found->bias ? 1 : 0;
    return BRONTES_RESULT(call, brontes_cached_weight_info, to, info);
  });
}

brontes_status brontes_matmul_cache_weight(const brontes_matmul_cache* cache, const char* name, brontes_weight** weight,
                                           brontes_error* error) {
  const char* const call = __func__;
  return make(call, weight, error, [&](brontes_weight*& out) -> Error {
    if (Error e = check(call, cache, "matmul cache")) return e;
    if (name == nullptr) return null_data(call, "a name");
    return wrap(cache->cache.weight(name), out);
  });
}

brontes_status brontes_matmul_cache_matmul(brontes_matmul_cache* cache, const char* name, const float* input,
                                           size_t input_count, float* output, size_t output_count, uint64_t m,
                                           const brontes_matmul_epilogue* epilogue, brontes_error* error) {
  const char* const call = __func__;
  return named(call, cache, name, error, [&](MatmulCache& with, const char* which) -> Error {
    brontes_matmul_epilogue given;
    if (Error e = BRONTES_STRUCT(call, brontes_matmul_epilogue, epilogue, given)) return e;
    MatmulEpilogue after;
    if (Error e = set(after.activation, given.activation, call, "brontes_activation")) return e;
    if (Error e = set_alpha(call, given.has_alpha, given.alpha, after.alpha)) return e;
    after.bias = given.no_bias == 0;
    return with.matmul(which, {input, input_count}, {output, output_count}, m, after);
  });
}

uint64_t brontes_matmul_cache_io_bytes(const brontes_matmul_cache* cache) {
  return is(cache) ? cache->cache.io_bytes() : 0;
}

size_t brontes_matmul_cache_program_count(const brontes_matmul_cache* cache) {
  return is(cache) ? cache->cache.program_count() : 0;
}

brontes_status brontes_matmul_cache_trim(brontes_matmul_cache* cache, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, cache, "matmul cache")) return e;
    cache->cache.trim();
    return {};
  });
}

brontes_status brontes_matmul_cache_get_stats(const brontes_matmul_cache* cache, brontes_batch_stats* stats,
                                              brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, cache, "matmul cache")) return e;
    return BRONTES_RESULT(call, brontes_batch_stats, to_c(cache->cache.stats()), stats);
  });
}
