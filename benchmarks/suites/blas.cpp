#include "blas.hpp"

#include "machine.hpp"

#if BRONTES_HAVE_OPENBLAS
#  include <cblas.h>
#  include <dlfcn.h>

#  include <cstdlib>
#  include <stdexcept>
#endif

namespace brontes::bench {

#if BRONTES_HAVE_OPENBLAS

namespace {

const char* core_type() {
  switch (simd()) {
    case Simd::avx512: return "SkylakeX";
    case Simd::avx2: return "Haswell";
    case Simd::other: break;
  }
  return nullptr;
}

template <class Function>
Function* function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

Blas::Blas() {
  if (const char* type = core_type(); type != nullptr) setenv("OPENBLAS_CORETYPE", type, 0);
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"}) {
    library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) break;
  }
  if (library_ == nullptr) {
    unavailable_ = "libopenblas.so.0 is not installed";
    return;
  }
  sgemm_ = dlsym(library_, "cblas_sgemm");
  sgemv_ = dlsym(library_, "cblas_sgemv");
  if (sgemm_ == nullptr || sgemv_ == nullptr) {
    unavailable_ = "libopenblas has no cblas_sgemm or cblas_sgemv";
    return;
  }
  if (auto* core = function<char*()>(library_, "openblas_get_corename")) core_ = core();
  if (auto* config = function<char*()>(library_, "openblas_get_config")) config_ = config();
  if (auto* threads = function<int()>(library_, "openblas_get_num_threads")) threads_ = threads();
}

// It has threads of its own, which do not survive being unmapped: the library stays open.
Blas::~Blas() = default;

void Blas::matmul(const float* a, const float* b, float* c, std::size_t m, std::size_t k, std::size_t n,
                  bool transposed) const {
  const auto rows = static_cast<blasint>(m);
  const auto inner = static_cast<blasint>(k);
  const auto columns = static_cast<blasint>(n);
  if (m == 1) {
    // y = B^T x, and B as it lies in memory is [k,n], or [n,k] if transposed.
    auto* sgemv = reinterpret_cast<decltype(&cblas_sgemv)>(sgemv_);
    if (transposed) {
      sgemv(CblasRowMajor, CblasNoTrans, columns, inner, 1.0f, b, inner, a, 1, 0.0f, c, 1);
    } else {
      sgemv(CblasRowMajor, CblasTrans, inner, columns, 1.0f, b, columns, a, 1, 0.0f, c, 1);
    }
    return;
  }
  auto* sgemm = reinterpret_cast<decltype(&cblas_sgemm)>(sgemm_);
  sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, rows, columns, inner, 1.0f, a, inner, b,
        transposed ? inner : columns, 0.0f, c, columns);
}

#else

Blas::Blas() : unavailable_("built without OpenBLAS") {}
Blas::~Blas() = default;
void Blas::matmul(const float*, const float*, float*, std::size_t, std::size_t, std::size_t, bool) const {}

#endif

Peer Blas::describe() const {
  return {"openblas", unavailable_, {{"core", core_}, {"config", config_}, {"threads", std::to_string(threads_)}}};
}

const Blas& blas() {
  static const Blas library;
  return library;
}

}  // namespace brontes::bench
