// The op table and the case table belong together, and the comparison must be able to fail.
#include "elementwise.hpp"
#include "reference.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace cases = brontes::cases;

namespace {

struct TableRow {
  const char* name;
  int arity;
  int scalars;
};

const TableRow op_table[] = {
#define BRONTES_OP(name, code, arity, scalars, formula) {#name, arity, scalars},
#include "elementwise.def"
#undef BRONTES_OP
};

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("every op of the elementwise table has a reference case", "[cases]") {
  for (const TableRow& row : op_table) {
    INFO("op " << row.name);
    const cases::ElementwiseCase* found = cases::find_elementwise_case(row.name);
    CHECK(found != nullptr);
    if (found == nullptr) continue;
    CHECK(found->arity == row.arity);
    CHECK(found->scalars == row.scalars);
  }
}

TEST_CASE("every case belongs to an op of the table, and to one only", "[cases]") {
  std::set<std::string> ops;
  for (const TableRow& row : op_table) ops.insert(row.name);
  std::set<std::string> seen;
  for (const cases::ElementwiseCase& c : cases::elementwise_cases()) {
    INFO("case " << c.name);
    CHECK(ops.count(c.name) == 1);
    CHECK(seen.insert(c.name).second);
  }
}

TEST_CASE("the tolerance of every case is tight enough to notice a wrong answer", "[cases]") {
  for (const cases::ElementwiseCase& c : cases::elementwise_cases()) {
    INFO("case " << c.name);
    CHECK(c.tolerance.relative < 1e-4);
    CHECK(c.tolerance.absolute < 1e-5);
  }
}

TEST_CASE("the comparison tells numbers, NaN and infinities apart", "[cases]") {
  const cases::Tolerance loose{1e-6, 1e-6};
  CHECK(cases::close(1.0f, 1.0, {}));
  CHECK_FALSE(cases::close(1.0f, 1.001, loose));
  CHECK(cases::close(not_a_number, static_cast<double>(not_a_number), {}));
  CHECK_FALSE(cases::close(not_a_number, 0.0, loose));
  CHECK_FALSE(cases::close(0.0f, static_cast<double>(not_a_number), loose));
  CHECK(cases::close(infinity, static_cast<double>(infinity), {}));
  CHECK_FALSE(cases::close(-infinity, static_cast<double>(infinity), loose));
  CHECK_FALSE(cases::close(infinity, 1e30, loose));
  CHECK_FALSE(cases::close(1e30f, static_cast<double>(infinity), loose));
  CHECK(cases::close(infinity, 1e39, loose));
  CHECK(cases::close(0.0f, -0.0, {}));
}

TEST_CASE("the comparison lets denormals be flushed, and nothing larger", "[cases]") {
  CHECK(cases::close(0.0f, 1e-40, {}));
  CHECK_FALSE(cases::close(0.0f, 1e-30, {}));
  const cases::ElementwiseCase& log = *cases::find_elementwise_case("log");
  CHECK(cases::close(log, -infinity, 1e-40f, 0));
  CHECK(cases::close(log, static_cast<float>(std::log(1e-40)), 1e-40f, 0));
  CHECK_FALSE(cases::close(log, -infinity, 1e-30f, 0));
}

TEST_CASE("a mismatch names the element and both values", "[cases]") {
  const cases::ElementwiseCase& add = *cases::find_elementwise_case("add");
  const float x[] = {1, 2, 3};
  const float y[] = {1, 1, 1};
  const float right[] = {2, 3, 4};
  const float wrong[] = {2, 3, 5};
  CHECK(cases::mismatch(add, right, x, y).empty());
  const std::string text = cases::mismatch(add, wrong, x, y);
  CHECK(text.find("element 2") != std::string::npos);
  CHECK(text.find('5') != std::string::npos);
  CHECK(text.find('4') != std::string::npos);
  CHECK_FALSE(cases::mismatch(add, {right, 2}, x, y).empty());
}

TEST_CASE("the matmul reference reads both layouts", "[cases]") {
  const float a[] = {1, 2, 3, 4, 5, 6};   // [2, 3]
  const float kn[] = {1, 2, 3, 4, 5, 6};  // [3, 2]
  const float nk[] = {1, 3, 5, 2, 4, 6};  // the same transposed
  const std::vector<double> want = {22, 28, 49, 64};
  CHECK(cases::matmul(a, kn, 2, 3, 2, brontes::Layout::kn).product == want);
  CHECK(cases::matmul(a, nk, 2, 3, 2, brontes::Layout::nk).product == want);
  const float got[] = {22, 28, 49, 65};
  CHECK_FALSE(
      cases::mismatch(got, cases::matmul(a, kn, 2, 3, 2, brontes::Layout::kn), cases::matmul_tolerance).empty());
}
