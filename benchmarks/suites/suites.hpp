// The suites of brontes-bench: one function and one file each.
#pragma once

#include <brontes/bench.hpp>

namespace brontes::bench {

Suite chain_suite();
Suite cold_suite();
Suite dispatch_suite();
Suite elementwise_suite();
Suite matmul_batched_suite();
Suite matmul_cache_suite();
Suite matmul_suite();
Suite ops_suite();
Suite raw_suite();
Suite reduce_suite();
Suite rows_suite();
Suite select_suite();
Suite transfer_suite();
Suite views_suite();

}  // namespace brontes::bench
