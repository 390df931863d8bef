// oneDNN, another CPU peer of matmul. Opened when it is first needed and not linked, as OpenBLAS is.
#pragma once

#include <brontes/bench.hpp>

#include <cstddef>
#include <string>

namespace brontes::bench {

class Dnn {
 public:
  Dnn();

  const std::string& unavailable() const noexcept { return unavailable_; }  ///< why, or ""
  Peer describe() const;

  /// c[m,n] = a[m,k] x b, where b is [k,n], or [n,k] if `transposed`. Throws Failure.
  void matmul(const float* a, const float* b, float* c, std::size_t m, std::size_t k, std::size_t n,
              bool transposed) const;

 private:
  // Not used where there is no oneDNN to build with.
  [[maybe_unused]] void* sgemm_ = nullptr;
  std::string unavailable_;
  std::string version_;
  std::string runtime_;
};

/// Opened by the first call.
const Dnn& dnn();

}  // namespace brontes::bench
