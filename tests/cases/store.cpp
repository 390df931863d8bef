// store() has no result to compare: tests/device and random graphs cover it.
#include "op_case.hpp"

namespace brontes::cases {

const CaseRoom store_cases{[] { return std::vector<OpCase>(); }};

}  // namespace brontes::cases
