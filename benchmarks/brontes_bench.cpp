// brontes-bench: the suites of the library, in the harness. docs/benchmarking.md is its manual.
#include "suites/blas.hpp"
#include "suites/dnn.hpp"
#include "suites/suites.hpp"

int main(int argc, char** argv) {
  using namespace brontes::bench;
  return brontes::bench::main(argc, argv,
                              {{chain_suite(), dispatch_suite(), raw_suite(), transfer_suite(), elementwise_suite(),
                                reduce_suite(), rows_suite(), views_suite(), matmul_suite(), matmul_batched_suite(),
                                matmul_cache_suite(), ops_suite(), cold_suite(), select_suite()},
                               [] {
                                 return std::vector<Peer>{blas().describe(), dnn().describe()};
                               }});
}
