// OpenBLAS, the CPU peer of matmul. Opened when it is first needed and not linked, because it reads
// OPENBLAS_CORETYPE while it is being loaded, and its own guess is wrong for CPUs newer than itself:
// it then runs SSE3 code at a quarter of the speed.
#pragma once

#include <brontes/bench.hpp>

#include <cstddef>
#include <string>

namespace brontes::bench {

class Blas {
 public:
  /// Sets OPENBLAS_CORETYPE to fit this CPU, unless the user has, and opens the library.
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  bool available() const noexcept { return unavailable_.empty(); }
  const std::string& unavailable() const noexcept { return unavailable_; }  ///< why, or ""

  const std::string& core() const noexcept { return core_; }      ///< the kernels in use: "Haswell"
  const std::string& config() const noexcept { return config_; }  ///< version and options, in its words
  int threads() const noexcept { return threads_; }
  Peer describe() const;

  /// c[m,n] = a[m,k] x b, where b is [k,n], or [n,k] if `transposed`. A single row is a sgemv, which is
  /// what somebody after speed would call.
  void matmul(const float* a, const float* b, float* c, std::size_t m, std::size_t k, std::size_t n,
              bool transposed) const;

 private:
  // Not used where there is no OpenBLAS to build with.
  [[maybe_unused]] void* library_ = nullptr;
  [[maybe_unused]] void* sgemm_ = nullptr;
  [[maybe_unused]] void* sgemv_ = nullptr;
  std::string unavailable_;
  std::string core_;
  std::string config_;
  int threads_ = 0;
};

/// Opened by the first call.
const Blas& blas();

}  // namespace brontes::bench
