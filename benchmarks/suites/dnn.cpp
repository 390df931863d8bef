#include "dnn.hpp"

#if BRONTES_HAVE_ONEDNN
#  include <dlfcn.h>
#  include <oneapi/dnnl/dnnl.h>

#  include <cstdlib>
#endif

namespace brontes::bench {

#if BRONTES_HAVE_ONEDNN

// Like OpenBLAS it has threads that do not survive being unmapped: the library stays open.
Dnn::Dnn() {
  // Threads of OpenMP that spin at a barrier take the CPU from the one that they wait for as soon as anything else
  // runs: a product of 64x64x64 then takes a hundred times as long.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  void* library = nullptr;
  // The version whose header this was built with.
  const std::string versioned = "libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR);
  for (const char* name : {versioned.c_str(), "libdnnl.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    unavailable_ = versioned + " is not installed";
    return;
  }
  sgemm_ = dlsym(library, "dnnl_sgemm");
  auto* version = reinterpret_cast<decltype(&dnnl_version)>(dlsym(library, "dnnl_version"));
  if (sgemm_ == nullptr || version == nullptr) {
    unavailable_ = versioned + " has no dnnl_sgemm";
    return;
  }
  const dnnl_version_t* v = version();
  version_ = std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  runtime_ = v->cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
             : v->cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
             : v->cpu_runtime == DNNL_RUNTIME_SEQ ? "sequential"
                                                  : "other";
}

void Dnn::matmul(const float* a, const float* b, float* c, std::size_t m, std::size_t k, std::size_t n,
                 bool transposed) const {
  const auto rows = static_cast<dnnl_dim_t>(m);
  const auto inner = static_cast<dnnl_dim_t>(k);
  const auto columns = static_cast<dnnl_dim_t>(n);
  auto* sgemm = reinterpret_cast<decltype(&dnnl_sgemm)>(sgemm_);
  const dnnl_status_t status = sgemm('N', transposed ? 'T' : 'N', rows, columns, inner, 1.0f, a, inner, b,
                                     transposed ? inner : columns, 0.0f, c, columns);
  if (status != dnnl_success) throw Failure("dnnl_sgemm: status " + std::to_string(static_cast<int>(status)));
}

#else

Dnn::Dnn() : unavailable_("built without oneDNN") {}
void Dnn::matmul(const float*, const float*, float*, std::size_t, std::size_t, std::size_t, bool) const {}

#endif

Peer Dnn::describe() const { return {"onednn", unavailable_, {{"version", version_}, {"threading", runtime_}}}; }

const Dnn& dnn() {
  static const Dnn library;
  return library;
}

}  // namespace brontes::bench
