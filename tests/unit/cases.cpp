// The op table and the case table belong together, and the comparison must be able to fail.
#include "elementwise.hpp"
#include "op_case.hpp"
#include "record/graph.hpp"
#include "reference.hpp"
#include "support/detached.hpp"

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
  const char* types;
};

const TableRow op_table[] = {
#define BRONTES_OP(name, code, arity, scalars, types, formula) {#name, arity, scalars, #types},
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
    CHECK(brontes::reference::elementwise(row.name) != nullptr);
    if (found == nullptr) continue;
    CHECK(found->arity == row.arity);
    CHECK(found->scalars == row.scalars);
    const std::string plain = row.arity == 0 ? "none_f" : std::string(static_cast<std::size_t>(row.arity), 'f') + "_f";
    const std::string copies = "t_t";  // tried with f32
    CHECK((row.types == (found->types == nullptr ? plain : found->types) || row.types == copies));
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

TEST_CASE("every room of the catalogue has cases, named after it", "[cases]") {
  const auto rooms = brontes::ops::catalogue();
  const auto with_cases = cases::op_cases();
  REQUIRE(rooms.size() == with_cases.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    INFO("room " << rooms[i].name);
    CHECK(rooms[i].ops.size() != 0);
    const auto all = with_cases[i].room.cases();
    CHECK((!all.empty() || std::string(rooms[i].name) == "store"));
    for (const cases::OpCase& c : all) {
      INFO(c.name);
      CHECK(c.name.rfind(std::string(rooms[i].name) + "/", 0) == 0);
      CHECK(names.insert(c.name).second);
    }
  }
}

TEST_CASE("every op of a room is recorded by one of its cases", "[cases]") {
  const auto rooms = brontes::ops::catalogue();
  const auto with_cases = cases::op_cases();
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    std::set<std::string> recorded;
    for (const cases::OpCase& c : with_cases[i].room.cases()) {
      INFO(c.name);
      brontes::Batch batch = brontes::OpAccess::detached();
      std::vector<brontes::Tensor> operands;
      for (const cases::Operand& o : c.operands) operands.push_back(brontes::test::stand_in(batch, o.shape, o.type));
      const brontes::Tensor y = c.record(batch, operands);
      CHECK(batch.error().message == "");
      CHECK(y.valid());
      for (const auto& node : brontes::OpAccess::graph(batch)->nodes()) recorded.insert(node.op->name);
    }
    for (const brontes::record::Op& op : rooms[i].ops) {
      if (op.infer != nullptr) CHECK(recorded.count(op.name) == 1);
    }
  }
}
