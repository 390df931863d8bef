// What docs/architecture.md says of numbers: special values go through chains of ops as IEEE 754 has it, whatever a
// driver would rather assume, and sums are as close as stated.
#include "elementwise.hpp"
#include "fixture.hpp"
#include "reference.hpp"

#include <brontes/weight.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

namespace brontes::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float largest = std::numeric_limits<float>::max();
constexpr float smallest = std::numeric_limits<float>::min();

// Register 0 is the value, register 1 another one, and each step adds a register.
struct Step {
  std::string op;
  std::size_t x = 0, y = 0;
  float p = 0;
};
using Steps = std::vector<Step>;

std::string described(const Steps& steps) {
  std::vector<std::string> names = {"a", "b"};
  for (const Step& s : steps) {
    const cases::ElementwiseCase& c = *cases::find_elementwise_case(s.op);
    std::ostringstream call;
    call << s.op << "(" << names[s.x];
    if (c.arity > 1) call << ", " << names[s.y];
    if (c.scalars > 0) call << ", " << s.p;
    call << ")";
    names.push_back(call.str());
  }
  return names.back();
}

Tensor record(Batch& batch, const Steps& steps, Tensor a, Tensor b) {
  std::vector<Tensor> registers = {a, b};
  for (const Step& s : steps) {
    const cases::Operands operands{batch, a.shape(), registers[s.x], registers[s.y], {}, s.p, 0};
    registers.push_back(cases::find_elementwise_case(s.op)->record(operands));
  }
  return registers.back();
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// As IEEE 754 has it, on the host, with the largest finite number met on the way.
struct Evaluated {
  float value;
  float magnitude;
};
Evaluated evaluate(const Steps& steps, float a, float b, bool flush) {
  std::vector<float> registers = {a, b};
  float magnitude = 0;
  for (const Step& s : steps) {
    const float x = flush ? flushed(registers[s.x]) : registers[s.x];
    const float y = flush ? flushed(registers[s.y]) : registers[s.y];
    const float p = flush ? flushed(s.p) : s.p;
    float r = 0;
    if (s.op == "add") r = x + y;
    if (s.op == "sub") r = x - y;
    if (s.op == "mul") r = x * y;
    if (s.op == "div") r = x / y;
    if (s.op == "scale") r = x * p;
    if (s.op == "offset") r = x + p;
    if (s.op == "neg") r = -x;
    if (s.op == "abs") r = std::fabs(x);
    if (s.op == "min") r = std::isnan(x) || std::isnan(y) ? nan : std::min(x, y);
    if (s.op == "max") r = std::isnan(x) || std::isnan(y) ? nan : std::max(x, y);
    registers.push_back(flush ? flushed(r) : r);
  }
  for (const float r : registers) {
    if (std::isfinite(r)) magnitude = std::max(magnitude, std::fabs(r));
  }
  return {registers.back(), magnitude};
}

// Divisions may be off by 3 ulp, and what cancels them leaves that.
bool agrees(const Steps& steps, float a, float b, float got) {
  for (const bool flush : {false, true}) {
    const Evaluated want = evaluate(steps, a, b, flush);
    const cases::Tolerance tolerance{0x1p-20, 0x1p-20 * static_cast<double>(want.magnitude)};
    if (cases::close(got, static_cast<double>(want.value), tolerance)) return true;
  }
  return false;
}

const std::vector<std::string> arithmetic = {"add", "sub", "mul", "div"};

// What algebra would simplify: to nothing, to an operand, or to another formula.
std::vector<Steps> identities() {
  std::vector<Steps> all;
  for (const char* op : {"add", "sub", "mul", "div", "min", "max"}) all.push_back({{op, 0, 0}});
  for (const std::string& first : arithmetic) {
    for (const std::string& second : arithmetic) {
      all.push_back({{first, 0, 1}, {second, 2, 1}});
      all.push_back({{first, 0, 1}, {second, 0, 2}});
      all.push_back({{first, 0, 1}, {second, 2, 2}});
      all.push_back({{first, 0, 1}, {first, 1, 0}, {second, 2, 3}});
      all.push_back({{first, 0, 0}, {second, 2, 1}});
    }
    // Distributed: a * b - a * b, a / b + a / b and the like, with a factor taken out.
    all.push_back({{first, 0, 1}, {"neg", 2}, {"add", 2, 3}});
    all.push_back({{"neg", 0}, {first, 2, 0}});
    all.push_back({{"abs", 0}, {first, 2, 0}});
    all.push_back({{"scale", 0, 0, 2}, {first, 2, 0}});
    all.push_back({{"scale", 0, 0, -1}, {first, 2, 0}});
    all.push_back({{"offset", 0, 0, 1}, {first, 2, 0}});
    all.push_back({{"sub", 0, 0}, {first, 2, 1}});
    all.push_back({{"div", 0, 0}, {first, 2, 1}});
  }
  for (const float p : {0.0f, 1.0f, -1.0f, 3.0f, infinity, nan, largest}) {
    all.push_back({{"scale", 0, 0, p}});
    all.push_back({{"offset", 0, 0, p}});
    all.push_back({{"scale", 0, 0, p}, {"scale", 2, 0, 1 / p}});
    all.push_back({{"offset", 0, 0, p}, {"offset", 2, 0, -p}});
    all.push_back({{"scale", 0, 0, p}, {"sub", 2, 2}});
    all.push_back({{"scale", 0, 0, p}, {"offset", 2, 0, p}});
  }
  return all;
}

// Every pair of these.
struct Pairs {
  std::vector<float> a, b;
};
Pairs special_pairs() {
  Pairs pairs;
  const std::vector<float> values = {nan,      infinity, -infinity, 0.0f,    -0.0f, largest,
                                     -largest, smallest, 1e-40f,    -1e-40f, 1.0f,  -3.7f};
  for (const float a : values) {
    for (const float b : values) {
      pairs.a.push_back(a);
      pairs.b.push_back(b);
    }
  }
  return pairs;
}

// How many of the results are wrong, and which was the first.
struct Wrong {
  std::size_t count = 0;
  std::string first;

  void check(const Steps& steps, Span<const float> a, Span<const float> b, Span<const float> got) {
    REQUIRE(got.size() == a.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (agrees(steps, a[i], b[i], got[i])) continue;
      if (count++ != 0) continue;
      std::ostringstream text;
      text.precision(9);
      text << described(steps) << " with a = " << a[i] << ", b = " << b[i] << " gave " << got[i] << " instead of "
           << evaluate(steps, a[i], b[i], false).value;
      first = text.str();
    }
  }
};

// The bits: -0 is not 0, and all NaN are alike.
bool same(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)); }

DeviceOptions fusing_options() {
  DeviceOptions options = checked_options();
  options.max_fused_programs = 100000;
  return options;
}

std::vector<std::vector<float>> run_identities(const Device& device, bool fuse) {
  const Pairs pairs = special_pairs();
  BatchOptions options;
  options.fuse = fuse;
  Batch batch(device, options);
  const Tensor a = batch.upload(pairs.a);
  const Tensor b = batch.upload(pairs.b);
  std::vector<Tensor> results;
  // A batch for all, but each a program of its own: an op that had several users would end a group.
  for (const Steps& steps : identities()) results.push_back(record(batch, steps, a, b));
  REQUIRE_OK(batch.execute());
  std::vector<std::vector<float>> got;
  for (const Tensor& result : results) got.push_back(read(batch, result));
  return got;
}

void check_identities(const Device& device) {
  const Pairs pairs = special_pairs();
  const std::vector<Steps> programs = identities();
  REQUIRE(programs.size() * pairs.a.size() >= 500);
  const auto fused = run_identities(device, true);
  const auto unfused = run_identities(device, false);
  std::size_t different = 0;
  for (const bool fuse : {true, false}) {
    Wrong wrong;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      wrong.check(programs[i], pairs.a, pairs.b, (fuse ? fused : unfused)[i]);
    }
    INFO((fuse ? "fused: " : "unfused: ") << wrong.first);
    CHECK(wrong.count == 0);
  }
  for (std::size_t i = 0; i < programs.size(); ++i) {
    for (std::size_t j = 0; j < pairs.a.size(); ++j) different += same(fused[i][j], unfused[i][j]) ? 0 : 1;
  }
  CHECK(different == 0);
}

// The identities that a driver is most tempted by, short enough for an epilogue.
std::vector<Steps> short_identities() {
  return {
      {{"sub", 0, 0}},
      {{"sub", 0, 1}, {"add", 2, 1}},
      {{"mul", 0, 1}, {"sub", 2, 2}},
  };
}

constexpr MatmulKernel every_kernel[] = {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled,
                                         MatmulKernel::subgroup, MatmulKernel::panel};

// With W[n,k], among its lanes.
bool shares_k(MatmulKernel kernel) { return kernel == MatmulKernel::gemv || kernel == MatmulKernel::subgroup; }

constexpr float alphas[] = {infinity, -infinity, nan, 0.0f, 2.0f};

// Whole numbers, so that sums are exact, of both signs, so that parts of a sum and the sum differ in theirs. The last
// row of a product is zeros.
struct AlphaData {
  std::vector<float> x, w;

  AlphaData(std::uint64_t m, std::uint64_t k, std::uint64_t n)
      : x(cases::random_integers(m * k, 3, k)), w(cases::random_integers(k * n, 3, n)) {
    std::fill(x.end() - static_cast<std::ptrdiff_t>(k), x.end(), 0.0f);
  }
};

void check_alphas(const Device& device, MatmulKernel kernel, std::uint64_t m, std::uint64_t k, std::uint64_t n) {
  const AlphaData data(m, k, n);
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    Batch batch(device);
    const Tensor x = batch.upload(data.x, {m, k});
    const Tensor w = batch.upload(data.w, layout == Layout::nk ? Shape(n, k) : Shape(k, n));
    std::vector<Tensor> products;
    for (const float alpha : alphas) products.push_back(batch.matmul(x, w, {alpha, layout, kernel}));
    REQUIRE_OK(batch.execute());
    for (std::size_t i = 0; i < std::size(alphas); ++i) {
      INFO("alpha = " << alphas[i] << ", " << to_string(kernel) << " " << to_string(layout) << ", " << m << "x" << k
                      << "x" << n);
      CHECK(cases::mismatch(read(batch, products[i]), cases::matmul(data.x, data.w, m, k, n, layout, alphas[i]), 0) ==
            "");
    }
  }
}

// Data that makes errors add up: element i of n.
struct Pattern {
  const char* name;
  bool grows;  // its error, with the length
  float (*at)(std::uint64_t i, std::uint64_t n);
};
constexpr Pattern patterns[] = {
    {"constant", true, [](std::uint64_t, std::uint64_t) { return 0.1f; }},
    {"alternating", false, [](std::uint64_t i, std::uint64_t) { return i % 2 == 0 ? 0.1f : -0.3f; }},
    {"growing", false,
     [](std::uint64_t i, std::uint64_t n) { return static_cast<float>(i + 1) / static_cast<float>(n); }},
    {"one huge, many small", true, [](std::uint64_t i, std::uint64_t) { return i == 0 ? 1.0f : 0x1.fp-25f; }},
    // Each chain of additions that begins in the first elements loses all that follows.
    {"huge ones first", false, [](std::uint64_t i, std::uint64_t) { return i < 256 ? 1.0f : 0x1.fp-25f; }},
    // And each that begins anywhere rounds up all the time.
    {"just above half an ulp", false, [](std::uint64_t i, std::uint64_t) { return i % 512 == 0 ? 1.0f : 0x1.08p-24f; }},
};

std::vector<float> data_of(const Pattern& pattern, std::uint64_t n) {
  std::vector<float> values(n);
  for (std::uint64_t i = 0; i < n; ++i) values[i] = pattern.at(i, n);
  return values;
}

float only(const Batch& batch, Tensor x) { return read(batch, x).at(0); }

// The error in units of what is allowed.
double error_of(float got, double want, double allowed) { return std::fabs(static_cast<double>(got) - want) / allowed; }

void check_sums(const Device& device, std::uint64_t n) {
  for (const Pattern& pattern : patterns) {
    INFO(pattern.name << ", " << n << " elements");
    const std::vector<float> x = data_of(pattern, n);
    const std::vector<float> y(n, 0.7f);
    Batch batch(device);
    const Tensor values = batch.upload(x);
    const Tensor sum = batch.sum(values);
    const Tensor dot = batch.dot(values, batch.upload(y));
    REQUIRE_OK(batch.execute());
    const double tolerance = cases::reduction_tolerance(n);
    CHECK(error_of(only(batch, sum), cases::sum(x), tolerance * cases::sum_of_magnitudes(x)) <= 1);
    CHECK(error_of(only(batch, dot), cases::dot(x, y), tolerance * cases::dot_of_magnitudes(x, y)) <= 1);
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "NaN, infinities and zeros go through what algebra would simplify as IEEE 754 has it",
                 "[numbers]") {
  check_identities(open_device(fusing_options()));
}

TEST_CASE_METHOD(DeviceTest, "special values also survive where shaders cannot ask for it", "[numbers]") {
  DeviceOptions options = fusing_options();
  options.simulate.no_float_controls = true;
  check_identities(open_device(options));
}

TEST_CASE_METHOD(DeviceTest, "ops behind a reduction treat special values as IEEE 754 has it", "[numbers][reduction]") {
  const Pairs pairs = special_pairs();
  for (const bool fuse : {true, false}) {
    BatchOptions options;
    options.fuse = fuse;
    Wrong wrong;
    for (const Steps& steps : short_identities()) {
      Batch batch(shared_device(), options);
      std::vector<Tensor> results;
      for (std::size_t i = 0; i < pairs.a.size(); ++i) {
        std::vector<float> x(40, 0.0f);
        x[i % x.size()] = pairs.a[i];
        results.push_back(record(batch, steps, batch.sum(batch.upload(x)), batch.upload({pairs.b[i]})));
      }
      REQUIRE_OK(batch.execute());
      std::vector<float> got;
      for (const Tensor& result : results) got.push_back(read(batch, result).at(0));
      wrong.check(steps, pairs.a, pairs.b, got);
    }
    INFO((fuse ? "fused: " : "unfused: ") << wrong.first);
    CHECK(wrong.count == 0);
  }
}

TEST_CASE_METHOD(DeviceTest, "ops behind a product treat special values as IEEE 754 has it, with every kernel",
                 "[numbers][matmul]") {
  const Pairs pairs = special_pairs();
  const std::uint64_t n = pairs.a.size();
  for (const MatmulKernel kernel : every_kernel) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      if (layout == Layout::kn && kernel != MatmulKernel::subgroup) continue;  // the only ones with another epilogue
      for (const bool fuse : {true, false}) {
        BatchOptions options;
        options.fuse = fuse;
        Batch batch(shared_device(), options);
        const Tensor one = batch.upload({1.0f});
        const Tensor b = batch.upload(pairs.b, {1, n});
        std::vector<Tensor> results;
        for (const Steps& steps : short_identities()) {
          const Tensor a = batch.matmul(one, batch.upload(pairs.a), 1, 1, n, {1.0f, layout, kernel});
          results.push_back(record(batch, steps, a, b));
        }
        REQUIRE_OK(batch.execute());
        Wrong wrong;
        for (std::size_t i = 0; i < results.size(); ++i) {
          wrong.check(short_identities()[i], pairs.a, pairs.b, read(batch, results[i]));
        }
        INFO(to_string(kernel) << " " << to_string(layout) << (fuse ? " fused: " : " unfused: ") << wrong.first);
        CHECK(wrong.count == 0);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "alpha meets the whole sum once, also infinite and NaN, with every kernel",
                 "[numbers][matmul]") {
  for (const MatmulKernel kernel : every_kernel) check_alphas(shared_device(), kernel, 5, 70, 24);
}

TEST_CASE_METHOD(DeviceTest, "alpha meets the whole sum once where loops are short and k goes in parts",
                 "[numbers][matmul]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 64;
  const Device device = open_device(options);
  for (const MatmulKernel kernel : every_kernel) {
    const MatmulChoice choice = explain_matmul(device, 5, 3000, 24, {1.0f, Layout::nk, kernel});
    INFO(to_string(kernel) << ": " << choice.reason);
    CHECK(contains(choice.reason, "parts in turn"));
    check_alphas(device, kernel, 5, 3000, 24);
  }
}

TEST_CASE_METHOD(DeviceTest, "alpha meets the whole sum once where k is split into slices", "[numbers][matmul]") {
  for (const MatmulKernel kernel : {MatmulKernel::gemv, MatmulKernel::tiled}) {
    for (const std::uint64_t n : {8u, 5u}) {
      CHECK(explain_matmul(shared_device(), 3, 5000, n, {1.0f, Layout::nk, kernel}).slices > 1);
      check_alphas(shared_device(), kernel, 3, 5000, n);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "alpha meets the whole sum once where a weight comes in parts", "[numbers][matmul]") {
  const std::uint64_t m = 3, k = 640, n = 24;
  DeviceOptions options = checked_options();
  options.simulate.max_storage_range = 16384;
  options.simulate.max_loop_iterations = 64;
  const Device device = open_device(options);
  const AlphaData data(m, k, n);
  auto weight = Weight::from(device, data.w, n, k);
  REQUIRE_OK(weight.error());
  for (const MatmulKernel kernel : every_kernel) {
    Batch batch(device);
    std::vector<Tensor> products;
    for (const float alpha : alphas) {
      products.push_back(
          batch.matmul(batch.upload(data.x, {m, k}), batch.import_weight(*weight), {alpha, Layout::nk, kernel}));
    }
    REQUIRE_OK(batch.execute());
    for (std::size_t i = 0; i < std::size(alphas); ++i) {
      INFO("alpha = " << alphas[i] << ", " << to_string(kernel));
      const auto reference = cases::matmul(data.x, data.w, m, k, n, Layout::nk, alphas[i]);
      CHECK(cases::mismatch(read(batch, products[i]), reference, 0) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a product over K = 0 is alpha times 0", "[numbers][matmul]") {
  for (const float alpha : alphas) {
    Batch batch(shared_device());
    const Tensor none = batch.upload(Span<const float>(), {2, 0});
    const Tensor product = batch.matmul(none, batch.upload(Span<const float>(), {0, 3}), {alpha});
    const Tensor behind = batch.offset(batch.matmul(none, batch.upload(Span<const float>(), {0, 3}), {alpha}), 1);
    REQUIRE_OK(batch.execute());
    INFO("alpha = " << alpha);
    CHECK(cases::mismatch(read(batch, product), std::vector<float>(6, alpha * 0.0f)) == "");
    CHECK(cases::mismatch(read(batch, behind), std::vector<float>(6, alpha * 0.0f + 1)) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "sums are as close as stated whatever the elements are", "[numbers][reduction]") {
  for (const std::uint64_t n : {1u, 2u, 17u, 300u, 4096u, 70001u, 1048579u}) check_sums(shared_device(), n);
}

TEST_CASE_METHOD(DeviceTest, "sums are as close as stated where loops are short", "[numbers][reduction]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 16;
  check_sums(open_device(options), 300001);
}

TEST_CASE_METHOD(DeviceTest, "a sum and a dot of 16777216 tenths are as close as stated", "[numbers][reduction]") {
  const std::uint64_t n = std::uint64_t{1} << 24;
  if (shared_device().info().max_storage_range < n * sizeof(float)) SKIP("the device takes no tensor of that size");
  Batch batch(shared_device());
  const Tensor tenths = batch.fill(0.1f, {n});
  const Tensor sum = batch.sum(tenths);
  const Tensor dot = batch.dot(tenths, tenths);
  REQUIRE_OK(batch.execute());
  const double tenth = static_cast<double>(0.1f);
  const double length = static_cast<double>(n);
  CHECK(error_of(only(batch, sum), tenth * length, cases::reduction_tolerance(n) * tenth * length) <= 1);
  CHECK(error_of(only(batch, dot), tenth * tenth * length, cases::reduction_tolerance(n) * tenth * tenth * length) <=
        1);
}

TEST_CASE_METHOD(DeviceTest, "products are as close as stated whatever the elements are, with every kernel",
                 "[numbers][matmul]") {
  struct Product {
    MatmulKernel kernel;
    Layout layout;
    Tensor y;
  };
  const std::uint64_t n = 4;
  for (const std::uint64_t k : {7u, 1024u, 100000u}) {
    const std::vector<float> w(k * n, 0.7f);
    for (const Pattern& pattern : patterns) {
      if (k > 10000 && !pattern.grows) continue;
      const std::vector<float> x = data_of(pattern, k);
      Batch batch(shared_device());
      const Tensor a = batch.upload(x);
      const Tensor b = batch.upload(w);
      std::vector<Product> products;
      for (const MatmulKernel kernel : every_kernel) {
        for (const Layout layout : {Layout::kn, Layout::nk}) {
          products.push_back({kernel, layout, batch.matmul(a, b, 1, k, n, {1.0f, layout, kernel})});
        }
      }
      REQUIRE_OK(batch.execute());
      // The same for both layouts.
      const cases::MatmulReference reference = cases::matmul(x, w, 1, k, n, Layout::nk);
      for (const Product& p : products) {
        INFO(to_string(p.kernel) << " " << to_string(p.layout) << ", " << pattern.name << ", k = " << k);
        const double tolerance = cases::matmul_bound(k, p.layout == Layout::nk && shares_k(p.kernel));
        CHECK(cases::mismatch(read(batch, p.y), reference, tolerance) == "");
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "products with stored weights are as close as stated", "[numbers][matmul][weights]") {
  // Each type has its weight exactly.
  struct Stored {
    DType type;
    float weight;
  };
  const std::uint64_t k = 99968, n = 4;
  const std::vector<float> x(k, 0.1f);
  for (const Stored& stored : {Stored{DType::f16, 0.75f}, Stored{DType::bf16, 0.75f}, Stored{DType::q8_0, 127.0f},
                               Stored{DType::q4_0, -8.0f}}) {
    const std::vector<float> w(n * k, stored.weight);
    const cases::MatmulReference reference = cases::matmul(x, w, 1, k, n, Layout::nk);
    auto weight = Weight::from(shared_device(), w, n, k, stored.type);
    REQUIRE_OK(weight.error());
    for (const MatmulKernel kernel : every_kernel) {
      INFO(to_string(kernel) << ", " << to_string(stored.type));
      Batch batch(shared_device());
      const Tensor y = batch.matmul(batch.upload(x, {1, k}), batch.import_weight(*weight), {1.0f, Layout::nk, kernel});
      CHECK(cases::mismatch(run(batch, y), reference, cases::matmul_bound(k, shares_k(kernel))) == "");
    }
  }
}

}  // namespace brontes::test
