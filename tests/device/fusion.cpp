// Fusing changes how ops run, never what they give: everything here runs with fusion and memory reuse on
// and off, and is held against double precision.
#include "elementwise.hpp"
#include "fixture.hpp"
#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace brontes::test {
namespace {

using cases::ElementwiseCase;

const ElementwiseCase& op(const char* name) {
  const ElementwiseCase* found = cases::find_elementwise_case(name);
  REQUIRE(found != nullptr);
  return *found;
}

// A number and how far a device may be from it.
struct Approx {
  double value = 0;
  double error = 0;
};

// What an op gives, with the errors of its operands carried along: the worst corner, and the op's own tolerance.
Approx apply(const ElementwiseCase& c, Approx x, Approx y, double p, double q) {
  Approx result{c.reference(x.value, y.value, 0, p, q), 0};
  for (double a : {x.value - x.error, x.value + x.error}) {
    for (double b : {y.value - y.error, y.value + y.error}) {
      result.error = std::fmax(result.error, std::fabs(c.reference(a, b, 0, p, q) - result.value));
    }
  }
  // Near an extremum the corners say nothing: no op of these tests is steeper there than twice its slope.
  result.error = std::fmin(2 * result.error, result.error + x.error + y.error);
  result.error += c.tolerance.absolute + c.tolerance.relative * (std::fabs(result.value) + result.error);
  return result;
}

std::string mismatch(const std::vector<float>& got, const std::vector<Approx>& want) {
  if (got.size() != want.size()) return std::to_string(got.size()) + " instead of " + std::to_string(want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (cases::close(got[i], want[i].value, {0, want[i].error})) continue;
    return "element " + std::to_string(i) + " of " + std::to_string(got.size()) + " is " + std::to_string(got[i]) +
           " instead of " + std::to_string(want[i].value) + " +- " + std::to_string(want[i].error);
  }
  return {};
}

// How one value lies in a [rows, cols] matrix.
enum class Extent { scalar, row, column, full };

Extent join(Extent a, Extent b) {
  if (a == b) return a;
  if (a == Extent::scalar) return b;
  if (b == Extent::scalar) return a;
  return Extent::full;
}

// Ops on values 0, 1, ...: first the inputs, then one per step.
struct Recipe {
  struct Input {
    Extent extent;
    std::vector<float> data;
    bool imported;
  };
  struct Step {
    const ElementwiseCase* op;
    std::size_t a, b;
    float p, q;
    bool keep;
  };
  std::uint64_t rows = 1, cols = 1;
  std::vector<Input> inputs;
  std::vector<Step> steps;

  Shape shape(Extent e) const {
    switch (e) {
      case Extent::scalar: return {1};
      case Extent::row: return {cols};
      case Extent::column: return {rows, 1};
      case Extent::full: break;
    }
    return {rows, cols};
  }
  std::size_t count(Extent e) const { return shape(e).count(); }
  std::size_t index(Extent e, std::size_t r, std::size_t c) const {
    switch (e) {
      case Extent::scalar: return 0;
      case Extent::row: return c;
      case Extent::column: return r;
      case Extent::full: break;
    }
    return r * cols + c;
  }
};

class Cook {
 public:
  explicit Cook(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  // Whole numbers and ops that keep them: every result is exact, however it is computed.
  Recipe exact(std::size_t steps) {
    Recipe recipe = inputs(true);
    static const char* const unary[] = {"relu", "neg", "abs", "copy"};
    static const char* const binary[] = {"add", "sub", "min", "max"};
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t kind = below(10);
      if (kind < 2) {
        step(recipe, unary[below(4)], pick(recipe));
      } else if (kind == 2) {
        step(recipe, "scale", pick(recipe), 0, below(2) == 0 ? 0.5f : -2.0f);
      } else if (kind == 3) {
        step(recipe, "offset", pick(recipe), 0, static_cast<float>(below(9)) - 4);
      } else if (kind == 4) {
        step(recipe, "clamp", pick(recipe), 0, -32, 32);
      } else if (kind == 5) {
        // Products stay small, so that no bit is lost.
        step(recipe, "clamp", pick(recipe), 0, -4, 4);
        step(recipe, "clamp", pick(recipe), 0, -4, 4);
        step(recipe, "mul", last(recipe), last(recipe) - 1);
      } else {
        step(recipe, binary[below(4)], pick(recipe), pick(recipe));
      }
    }
    return recipe;
  }

  // All ops, on any numbers.
  Recipe any(std::size_t steps) {
    Recipe recipe = inputs(false);
    static const char* const unary[] = {"relu", "neg",  "abs",       "sigmoid", "tanh", "swish",
                                        "gelu", "copy", "gelu_tanh", "exp",     "log",  "sqrt"};
    static const char* const binary[] = {"add", "sub", "min", "max", "mul", "div"};
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t kind = below(4);
      if (kind == 0) {
        step(recipe, below(2) == 0 ? "scale" : "offset", pick(recipe), 0, static_cast<float>(below(40)) / 10 - 2);
      } else if (kind == 1) {
        const std::string name = unary[below(12)];
        std::size_t x = pick(recipe);
        if (name == "exp") x = step(recipe, "clamp", x, 0, -4, 4);
        if (name == "log" || name == "sqrt") x = step(recipe, "offset", step(recipe, "abs", x), 0, 0.5f);
        step(recipe, name.c_str(), x);
      } else {
        const std::string name = binary[below(6)];
        std::size_t x = pick(recipe);
        std::size_t y = pick(recipe);
        if (name == "mul") x = step(recipe, "clamp", x, 0, -3, 3);
        if (name == "div") y = step(recipe, "offset", step(recipe, "abs", y), 0, 0.5f);
        step(recipe, name.c_str(), x, y);
      }
    }
    return recipe;
  }

 private:
  static std::size_t last(const Recipe& recipe) { return recipe.inputs.size() + recipe.steps.size() - 1; }

  Recipe inputs(bool whole) {
    static const std::uint64_t sizes[] = {1, 2, 3, 4, 5, 8, 12, 17, 31, 64};
    Recipe recipe;
    recipe.rows = sizes[below(10)];
    recipe.cols = sizes[below(10)];
    const std::size_t count = 1 + below(6);
    for (std::size_t i = 0; i < count; ++i) {
      const Extent extent = i == 0 || below(2) == 0 ? Extent::full : static_cast<Extent>(below(3));
      const std::size_t n = recipe.count(extent);
      recipe.inputs.push_back(
          {extent, whole ? cases::random_integers(n, 16, random_()) : cases::random_values(n, -4, 4, random_()),
           below(4) == 0});
    }
    return recipe;
  }

  // Mostly something recent, so that there are chains and not only bushes.
  std::size_t pick(const Recipe& recipe) {
    const std::size_t all = recipe.inputs.size() + recipe.steps.size();
    return below(3) == 0 ? below(all) : all - 1 - below(std::min<std::size_t>(all, 3));
  }

  std::size_t step(Recipe& recipe, const char* name, std::size_t a, std::size_t b = 0, float p = 0, float q = 0) {
    recipe.steps.push_back({&op(name), a, b, p, q, below(12) == 0});
    return last(recipe);
  }

  std::mt19937_64 random_;
};

struct Value {
  Extent extent = Extent::full;
  std::vector<Approx> elements;
  bool consumed = false;
  bool kept = false;
};

std::vector<Value> reference(const Recipe& recipe) {
  std::vector<Value> values;
  for (const auto& in : recipe.inputs) {
    Value v{in.extent, {}, false, false};
    for (float f : in.data) v.elements.push_back({double{f}, 0});
    values.push_back(v);
  }
  for (const auto& s : recipe.steps) {
    const bool two = s.op->arity == 2;
    values[s.a].consumed = true;
    if (two) values[s.b].consumed = true;
    Value v;
    v.extent = two ? join(values[s.a].extent, values[s.b].extent) : values[s.a].extent;
    v.kept = s.keep;
    v.elements.resize(recipe.count(v.extent));
    for (std::size_t r = 0; r < recipe.rows; ++r) {
      for (std::size_t c = 0; c < recipe.cols; ++c) {
        const Approx x = values[s.a].elements[recipe.index(values[s.a].extent, r, c)];
        const Approx y = two ? values[s.b].elements[recipe.index(values[s.b].extent, r, c)] : Approx();
        v.elements[recipe.index(v.extent, r, c)] = apply(*s.op, x, y, double{s.p}, double{s.q});
      }
    }
    values.push_back(std::move(v));
  }
  return values;
}

struct Mode {
  bool fuse, reuse;
};
constexpr Mode modes[] = {{true, true}, {true, false}, {false, true}, {false, false}};

BatchOptions options_for(Mode mode) {
  BatchOptions options;
  options.fuse = mode.fuse;
  options.reuse_memory = mode.reuse;
  return options;
}

// Runs a recipe and checks every readable value. Returns what the fused batch cost.
BatchStats check(const Device& device, const Recipe& recipe, bool bits) {
  const std::vector<Value> want = reference(recipe);
  std::vector<Buffer> buffers;
  for (const auto& in : recipe.inputs) {
    if (in.imported) buffers.push_back(Buffer::from(device, in.data, recipe.shape(in.extent)).value());
  }
  BatchStats fused;
  std::vector<std::vector<float>> first;
  for (const Mode mode : modes) {
    Batch batch(device, options_for(mode));
    std::vector<Tensor> tensors;
    std::size_t buffer = 0;
    for (const auto& in : recipe.inputs) {
      tensors.push_back(in.imported ? batch.import_buffer(buffers[buffer++])
                                    : batch.upload(in.data, recipe.shape(in.extent)));
    }
    for (const auto& s : recipe.steps) {
      const Tensor y = s.op->arity == 2 ? tensors[s.b] : Tensor();
      const Tensor t = s.op->record({batch, Shape(), tensors[s.a], y, {}, s.p, s.q});
      tensors.push_back(s.keep ? batch.keep(t) : t);
    }
    REQUIRE_OK(batch.execute());
    INFO("fuse " << mode.fuse << ", reuse " << mode.reuse << ", " << recipe.steps.size() << " steps on " << recipe.rows
                 << " x " << recipe.cols);
    if (mode.fuse && mode.reuse) fused = batch.stats();
    std::size_t position = 0;
    for (std::size_t v = recipe.inputs.size(); v < tensors.size(); ++v) {
      if (want[v].consumed && !want[v].kept) continue;
      const std::vector<float> got = read(batch, tensors[v]);
      INFO("value " << v << " of " << tensors.size() << ", by " << recipe.steps[v - recipe.inputs.size()].op->name);
      REQUIRE(mismatch(got, want[v].elements) == "");
      if (!bits) continue;
      if (first.size() == position) first.push_back(got);  // of the first mode
      REQUIRE(cases::mismatch(got, first[position++]) == "");
    }
  }
  return fused;
}

// Everything behind a matmul that its dispatch can take along.
struct Layer {
  std::vector<float> a, b, bias, residual;
  std::uint64_t m, k, n;
  MatmulOptions options;
};

// Unfused too, unless that costs a pipeline that takes seconds to compile.
void check_layer(const Device& device, const Layer& layer, std::uint64_t dispatches) {
  const cases::MatmulReference product =
      cases::matmul(layer.a, layer.b, layer.m, layer.k, layer.n, layer.options.layout, layer.options.alpha);
  std::vector<Approx> want;
  for (std::size_t i = 0; i < product.product.size(); ++i) {
    Approx x{product.product[i], cases::matmul_tolerance * product.magnitude[i]};
    x = apply(op("add"), x, {double{layer.bias[i % layer.n]}, 0}, 0, 0);
    x = apply(op("gelu"), x, {}, 0, 0);
    x = apply(op("add"), x, {double{layer.residual[i]}, 0}, 0, 0);
    want.push_back(apply(op("scale"), x, {}, -0.5, 0));
  }
  for (const Mode mode : {Mode{true, true}, Mode{false, true}}) {
    if (!mode.fuse && (layer.options.kernel == MatmulKernel::tiled || dispatches > 1) && !soak()) continue;
    Batch batch(device, options_for(mode));
    const Tensor product_tensor =
        batch.matmul(batch.upload(layer.a), batch.upload(layer.b), layer.m, layer.k, layer.n, layer.options);
    const Tensor activated = batch.gelu(batch.add(product_tensor, batch.upload(layer.bias)));
    const Tensor residual = batch.upload(layer.residual, {layer.m, layer.n});
    const Tensor y = batch.scale(batch.add(activated, residual), -0.5f);
    INFO(to_string(layer.options.kernel) << " " << to_string(layer.options.layout) << " " << layer.m << " x " << layer.k
                                         << " x " << layer.n << ", fuse " << mode.fuse);
    CHECK(mismatch(run(batch, y), want) == "");
    CHECK(batch.stats().dispatches == dispatches + (mode.fuse ? 0 : 4));
    CHECK(batch.stats().fused_operations == (mode.fuse ? 4 : 0));
  }
}

Layer make_layer(std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout, MatmulKernel kernel) {
  return {cases::random_values(m * k, -1, 1, m + k),
          cases::random_values(k * n, -1, 1, k + n),
          cases::random_values(n, -1, 1, n),
          cases::random_values(m * n, -1, 1, m + n),
          m,
          k,
          n,
          {0.75f, layout, kernel}};
}

void check_update_in_place(const Device& device) {
  const std::vector<float> data = cases::random_integers(1001, 9, 4);
  for (const Mode mode : modes) {
    const Buffer buffer = Buffer::from(device, data).value();
    Batch batch(device, options_for(mode));
    batch.store(batch.relu(batch.import_buffer(buffer)), buffer);
    REQUIRE_OK(batch.execute());
    std::vector<float> want = data;
    for (float& v : want) v = std::max(v, 0.0f);
    CHECK(cases::mismatch(buffer.read().value(), want) == "");
    CHECK(batch.stats().dispatches == (mode.fuse ? 1 : 2));
    CHECK(batch.stats().fused_operations == (mode.fuse ? 1 : 0));
  }
}

void check_old_contents(const Device& device) {
  const std::vector<float> old = cases::random_integers(16 * 16, 9, 5);
  std::vector<float> other(16 * 16, 0.0f);
  for (std::size_t i = 0; i < 16; ++i) other[i * 17] = 2.0f;
  double total = 0;
  for (float v : old) total += double{v};
  for (const Mode mode : modes) {
    INFO("fuse " << mode.fuse << ", reuse " << mode.reuse);
    {
      // A reader that runs late: it needs a reduction first.
      const Buffer buffer = Buffer::from(device, old, {16, 16}).value();
      Batch batch(device, options_for(mode));
      const Tensor b = batch.import_buffer(buffer);
      const Tensor late = batch.add(b, batch.sum(batch.neg(batch.offset(b, 0.0f))));
      batch.store(batch.fill(7.0f, {16, 16}), buffer);
      std::vector<float> want = old;
      for (float& v : want) v -= static_cast<float>(total);
      CHECK(cases::mismatch(run(batch, late), want) == "");
      CHECK(buffer.read().value() == std::vector<float>(16 * 16, 7.0f));
    }
    {
      // The reader's own group grows after the store was recorded.
      const Buffer buffer = Buffer::from(device, old, {16, 16}).value();
      Batch batch(device, options_for(mode));
      const Tensor x = batch.upload(other, {16, 16});
      const Tensor early = batch.scale(batch.import_buffer(buffer), 2.0f);
      batch.store(batch.neg(x), buffer);
      const Tensor y = batch.add(early, batch.sum(batch.relu(x)));
      std::vector<float> want = old;
      for (float& v : want) v = 2 * v + 32.0f;
      CHECK(cases::mismatch(run(batch, y), want) == "");
      CHECK(buffer.read().value()[0] == -2.0f);
    }
    {
      // A product into its own operand, and one into the other.
      for (const bool left : {true, false}) {
        const Buffer buffer = Buffer::from(device, old, {16, 16}).value();
        Batch batch(device, options_for(mode));
        const Tensor b = batch.import_buffer(buffer);
        const Tensor w = batch.upload(other, {16, 16});
        batch.store(batch.offset(left ? batch.matmul(b, w) : batch.matmul(w, b), 1.0f), buffer);
        REQUIRE_OK(batch.execute());
        std::vector<float> want = old;
        for (float& v : want) v = 2 * v + 1;
        CHECK(cases::mismatch(buffer.read().value(), want) == "");
      }
    }
    {
      // In place with a second reader, and with a kept value in the middle.
      const Buffer buffer = Buffer::from(device, old, {16, 16}).value();
      Batch batch(device, options_for(mode));
      const Tensor b = batch.import_buffer(buffer);
      const Tensor middle = batch.keep(batch.relu(b));
      batch.store(batch.add(middle, b), buffer);
      const Tensor kept = batch.neg(middle);
      REQUIRE_OK(batch.execute());
      std::vector<float> relu = old, want = old, negative = old;
      for (std::size_t i = 0; i < old.size(); ++i) {
        relu[i] = std::max(old[i], 0.0f);
        want[i] = relu[i] + old[i];
        negative[i] = -relu[i];
      }
      CHECK(cases::mismatch(read(batch, middle), relu) == "");
      CHECK(cases::mismatch(buffer.read().value(), want) == "");
      CHECK(cases::mismatch(read(batch, kept), negative) == "");
    }
    {
      // A scalar buffer that is broadcast over what the same dispatch could store into it.
      const Buffer scalar = Buffer::from(device, std::vector<float>{3.0f}, {1}).value();
      Batch batch(device, options_for(mode));
      const Tensor s = batch.import_buffer(scalar);
      const Tensor y = batch.mul(batch.upload(old), s);
      batch.store(batch.offset(batch.sum(y), 1.0f), scalar);
      REQUIRE_OK(batch.execute());
      CHECK(scalar.read().value() == std::vector<float>{static_cast<float>(3 * total) + 1});
    }
  }
}

void check_order_of_stores(const Device& device) {
  for (const Mode mode : modes) {
    const Buffer buffer = Buffer::from(device, counting(50)).value();
    Batch batch(device, options_for(mode));
    const Tensor first = batch.offset(batch.import_buffer(buffer), 1.0f);
    batch.store(batch.scale(first, 2.0f), buffer);
    const Tensor second = batch.offset(batch.import_buffer(buffer), 1.0f);
    batch.store(batch.neg(second), buffer);
    const Tensor third = batch.offset(batch.import_buffer(buffer), 1.0f);
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, third)[49] == -100.0f);  // -((49 + 1) * 2 + 1) + 1
    CHECK(buffer.read().value()[49] == -101.0f);
    CHECK(buffer.read().value()[0] == -3.0f);
  }
}

void check_two_stores(const Device& device) {
  for (const Mode mode : modes) {
    const Buffer one = Buffer::create(device, {33}).value();
    const Buffer two = Buffer::create(device, {3, 11}).value();
    Batch batch(device, options_for(mode));
    const Tensor y = batch.keep(batch.neg(batch.scale(batch.upload(counting(33)), 2.0f)));
    batch.store(y, one);
    batch.store(y, two);
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, y)[32] == -64.0f);
    CHECK(one.read().value()[32] == -64.0f);
    CHECK(two.read().value()[32] == -64.0f);
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "random programs on whole numbers give the same bits however they run", "[fusion]") {
  Cook cook(1);
  std::uint64_t fused = 0;
  const int rounds = soak() ? 2000 : 15;
  for (int round = 0; round < rounds; ++round) {
    INFO("round " << round);
    fused += check(shared_device(), cook.exact(1 + cook.below(14)), true).fused_operations;
  }
  CHECK(fused > static_cast<std::uint64_t>(rounds));  // or the test tests nothing
}

TEST_CASE_METHOD(DeviceTest, "random programs of all ops stay within the ops' tolerances", "[fusion]") {
  Cook cook(2);
  const int rounds = soak() ? 2000 : 10;
  for (int round = 0; round < rounds; ++round) {
    INFO("round " << round);
    check(shared_device(), cook.any(1 + cook.below(12)), false);
  }
}

TEST_CASE_METHOD(DeviceTest, "chains longer than the kernel's eight steps split and go on", "[fusion]") {
  for (std::size_t length : {7u, 8u, 9u, 16u, 17u, 40u}) {
    std::vector<float> data = cases::random_integers(37, 8, length);
    for (const Mode mode : modes) {
      Batch batch(shared_device(), options_for(mode));
      Tensor x = batch.upload(data);
      for (std::size_t i = 0; i < length; ++i) x = i % 2 == 0 ? batch.offset(x, 3.0f) : batch.neg(x);
      std::vector<float> want = data;
      for (float& v : want) {
        for (std::size_t i = 0; i < length; ++i) v = i % 2 == 0 ? v + 3.0f : -v;
      }
      CHECK(cases::mismatch(run(batch, x), want) == "");
      CHECK(batch.stats().dispatches == (mode.fuse ? (length + 7) / 8 : length));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "more inputs than a dispatch has are taken by several", "[fusion]") {
  for (std::size_t inputs : {2u, 4u, 5u, 9u}) {
    for (const Mode mode : modes) {
      Batch batch(shared_device(), options_for(mode));
      Tensor total = batch.upload(counting(101));
      for (std::size_t i = 1; i < inputs; ++i) {
        total = batch.add(total, batch.upload(std::vector<float>(101, static_cast<float>(i))));
      }
      std::vector<float> want = counting(101);
      for (float& v : want) v += static_cast<float>(inputs * (inputs - 1) / 2);
      CHECK(cases::mismatch(run(batch, total), want) == "");
      if (mode.fuse) CHECK(batch.stats().dispatches <= (inputs + 1) / 3);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "operands used twice, and a diamond, are one dispatch", "[fusion]") {
  const std::vector<float> data = cases::random_integers(1023, 9, 3);
  for (const Mode mode : modes) {
    Batch batch(shared_device(), options_for(mode));
    const Tensor x = batch.upload(data);
    const Tensor square = batch.mul(x, x);
    const Tensor left = batch.offset(square, 1.0f);
    const Tensor right = batch.relu(square);
    const Tensor y = batch.sub(batch.add(left, right), x);
    std::vector<float> want;
    for (float v : data) want.push_back(v * v + 1.0f + v * v - v);
    CHECK(cases::mismatch(run(batch, y), want) == "");
    CHECK(batch.stats().dispatches == (mode.fuse ? 1 : 5));
  }
}

TEST_CASE_METHOD(DeviceTest, "a row, a column and a scalar buffer are broadcast inside one dispatch", "[fusion]") {
  // Widths with and without a remainder of four, which the kernel loads differently.
  for (std::uint64_t rows : {1u, 3u, 8u}) {
    for (std::uint64_t cols : {1u, 4u, 7u, 36u}) {
      const std::vector<float> x = cases::random_integers(rows * cols, 9, 1);
      const std::vector<float> row = cases::random_integers(cols, 9, 2);
      const std::vector<float> column = cases::random_integers(rows, 9, 3);
      const Buffer scalar = Buffer::from(shared_device(), std::vector<float>{3.0f}, {1}).value();
      std::vector<float> want;
      for (std::size_t i = 0; i < x.size(); ++i) {
        want.push_back(std::max((x[i] + row[i % cols]) * column[i / cols] - 3.0f, 0.0f));
      }
      for (const Mode mode : modes) {
        Batch batch(shared_device(), options_for(mode));
        Tensor y = batch.add(batch.upload(x, {rows, cols}), batch.upload(row));
        y = batch.mul(y, batch.upload(column, {rows, 1}));
        y = batch.relu(batch.sub(y, batch.import_buffer(scalar)));
        INFO(rows << " x " << cols << ", fuse " << mode.fuse);
        CHECK(cases::mismatch(run(batch, y), want) == "");
        CHECK(batch.stats().dispatches == (mode.fuse ? 1 : 4));
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "every length has its tail right in a fused chain", "[fusion]") {
  for (std::size_t n : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 15u, 63u, 65u, 255u, 257u, 1023u, 4097u, 65537u}) {
    Batch batch(shared_device());
    const Tensor y = batch.offset(batch.scale(batch.relu(batch.upload(counting(n))), 2.0f), -1.0f);
    const Tensor z = batch.neg(batch.keep(y));
    std::vector<float> want = counting(n);
    for (float& v : want) v = 2 * v - 1;
    INFO(n);
    CHECK(cases::mismatch(run(batch, y), want) == "");
    for (float& v : want) v = -v;
    CHECK(cases::mismatch(read(batch, z), want) == "");
    CHECK(batch.stats().dispatches == 1);
  }
}

TEST_CASE_METHOD(DeviceTest, "an empty tensor passes through chains", "[fusion]") {
  for (const Mode mode : modes) {
    Batch batch(shared_device(), options_for(mode));
    const Tensor x = batch.upload({}, {0, 5});
    const Tensor y = batch.add(batch.relu(x), batch.upload(counting(5)));
    const Tensor total = batch.offset(batch.sum(batch.neg(x)), 2.0f);
    CHECK(run(batch, y).empty());
    CHECK(read(batch, total) == std::vector<float>{2});
  }
}

TEST_CASE_METHOD(DeviceTest, "NaN and infinities pass fused chains as they pass single ops", "[fusion]") {
  const std::vector<float>& special = cases::special_values();
  std::vector<float> x;
  std::vector<float> y;
  for (float a : special) {
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  using Record = Tensor (*)(Batch&, Tensor, Tensor);
  const Record chains[] = {
      [](Batch& b, Tensor s, Tensor t) { return b.max(b.relu(s), b.neg(t)); },
      [](Batch& b, Tensor s, Tensor t) { return b.clamp(b.min(s, t), -1.0f, 2.0f); },
      [](Batch& b, Tensor s, Tensor t) { return b.abs(b.max(b.clamp(s, -5.0f, 5.0f), t)); },
      [](Batch& b, Tensor s, Tensor t) { return b.relu(b.sub(b.relu(s), b.relu(t))); },
      [](Batch& b, Tensor s, Tensor t) { return b.add(b.scale(b.relu(s), 2.0f), t); },
      [](Batch& b, Tensor s, Tensor t) { return b.mul(b.relu(s), b.min(t, s)); },
      [](Batch& b, Tensor s, Tensor t) { return b.gelu(b.max(s, t)); },
      [](Batch& b, Tensor s, Tensor t) { return b.neg(b.swish(b.min(s, t))); },
      [](Batch& b, Tensor s, Tensor t) { return b.offset(b.sigmoid(b.max(b.neg(s), t)), 1.0f); },
      [](Batch& b, Tensor s, Tensor t) { return b.tanh(b.log(b.abs(b.max(s, t)))); },
  };
  constexpr float smallest = std::numeric_limits<float>::min();
  std::size_t number = 0;
  for (const Record record : chains) {
    std::vector<std::vector<float>> results;
    for (const bool fuse : {true, false}) {
      Batch batch(shared_device(), options_for({fuse, true}));
      results.push_back(run(batch, record(batch, batch.upload(x), batch.upload(y))));
      if (fuse) CHECK(batch.stats().dispatches == 1);
    }
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float one = results[0][i];
      const float other = results[1][i];
      // Denormals may be flushed at other places.
      const bool same = cases::close(one, double{other}, {0x1p-20, double{4 * smallest}});
      if (!same && wrong == 0) {
        UNSCOPED_INFO("chain " << number << ": x = " << x[i] << ", y = " << y[i] << ": " << one << " fused, " << other
                               << " not");
      }
      wrong += !same;
    }
    CHECK(wrong == 0);
    ++number;
  }
}

TEST_CASE_METHOD(DeviceTest, "relu -> scale -> add is one dispatch", "[fusion]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(100));
  (void)batch.add(batch.scale(batch.relu(x), 2.0f), batch.upload(counting(100)));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 1);
  CHECK(batch.stats().fused_operations == 2);
  CHECK(batch.stats().barriers == 0);
}

TEST_CASE_METHOD(DeviceTest, "a kept value in the middle of a group is written and right", "[fusion]") {
  const std::vector<float> data = cases::random_integers(999, 50, 9);
  for (const Mode mode : modes) {
    Batch batch(shared_device(), options_for(mode));
    const Tensor x = batch.upload(data);
    const Tensor a = batch.keep(batch.relu(x));
    const Tensor b = batch.scale(a, 2.0f);
    const Tensor c = batch.keep(batch.offset(b, 1.0f));
    const Tensor d = batch.neg(c);
    REQUIRE_OK(batch.execute());
    std::vector<float> wa, wc, wd;
    for (float v : data) {
      wa.push_back(std::max(v, 0.0f));
      wc.push_back(2 * wa.back() + 1);
      wd.push_back(-wc.back());
    }
    CHECK(cases::mismatch(read(batch, a), wa) == "");
    CHECK(cases::mismatch(read(batch, c), wc) == "");
    CHECK(cases::mismatch(read(batch, d), wd) == "");
    CHECK(batch.read(b).error().code == Errc::not_kept);
    CHECK(batch.stats().dispatches == (mode.fuse ? 1 : 4));
  }
}

TEST_CASE_METHOD(DeviceTest, "many kept values in one chain are all right", "[fusion]") {
  for (const Mode mode : modes) {
    BatchOptions options = options_for(mode);
    options.keep_all = true;
    Batch batch(shared_device(), options);
    std::vector<Tensor> tensors{batch.upload(counting(33))};
    for (int i = 0; i < 20; ++i) tensors.push_back(batch.offset(tensors.back(), 1.0f));
    REQUIRE_OK(batch.execute());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CHECK(read(batch, tensors[i])[32] == static_cast<float>(32 + i));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a value between two groups is there for both", "[fusion]") {
  // The sum cannot join, and the last op needs it and the start of the chain.
  const std::vector<float> data = cases::random_integers(500, 5, 11);
  std::vector<float> want;
  double total = 0;
  for (float v : data) total += double{v + 1};
  for (float v : data) want.push_back((v + 1) * static_cast<float>(total) - v);
  for (const Mode mode : modes) {
    Batch batch(shared_device(), options_for(mode));
    const Tensor x = batch.upload(data);
    const Tensor a = batch.offset(x, 1.0f);
    const Tensor s = batch.sum(a);
    const Tensor y = batch.sub(batch.mul(a, s), x);
    CHECK(cases::mismatch(run(batch, y), want) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "a layer of an MLP is one dispatch, whatever the kernel and the layout", "[fusion]") {
  for (Layout layout : {Layout::kn, Layout::nk}) {
    check_layer(shared_device(), make_layer(5, 6, 7, layout, MatmulKernel::automatic), 1);
    check_layer(shared_device(), make_layer(13, 21, 35, layout, MatmulKernel::naive), 1);
    check_layer(shared_device(), make_layer(1, 67, 45, layout, MatmulKernel::gemv), 1);
    check_layer(shared_device(), make_layer(13, 21, 35, layout, MatmulKernel::tiled), 1);
    if (soak()) check_layer(shared_device(), make_layer(64, 32, 64, layout, MatmulKernel::tiled), 1);
  }
}

TEST_CASE_METHOD(DeviceTest, "linear and gelu are one dispatch", "[fusion]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(8), {1, 8});
  const Tensor w = batch.fill(0.5f, {16, 8});
  (void)batch.gelu(batch.linear(x, batch.keep(w), batch.upload(counting(16))));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 2);  // with the fill
  CHECK(batch.stats().fused_operations == 2);
}

TEST_CASE_METHOD(DeviceTest, "a product over parts of K runs its epilogue once, at the end", "[fusion]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 64;
  const Device device = open_device(options);
  for (Layout layout : {Layout::kn, Layout::nk}) {
    for (MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::tiled, MatmulKernel::gemv}) {
      // Pipelines that take seconds to compile: one layout each.
      if (kernel == MatmulKernel::tiled && layout == Layout::kn && !soak()) continue;
      if (kernel == MatmulKernel::naive && layout == Layout::nk && !soak()) continue;
      const bool row = kernel == MatmulKernel::gemv;
      const Layer layer = make_layer(row ? 1 : 3, row ? 20003 : 2501, 6, layout, kernel);
      const MatmulChoice choice = explain_matmul(device, layer.m, layer.k, layer.n, layer.options);
      CHECK(choice.dispatches > 1);
      check_layer(device, layer, choice.dispatches);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a matmul whose result is wanted elsewhere keeps it", "[fusion]") {
  const std::vector<float> a = cases::random_integers(6 * 5, 4, 1);
  const std::vector<float> b = cases::random_integers(5 * 7, 4, 2);
  const cases::MatmulReference product = cases::matmul(a, b, 6, 5, 7, Layout::kn);
  for (const Mode mode : modes) {
    for (const bool keep : {false, true}) {
      Batch batch(shared_device(), options_for(mode));
      const Tensor p = batch.matmul(batch.upload(a, {6, 5}), batch.upload(b, {5, 7}));
      if (keep) (void)batch.keep(p);
      const Tensor r = batch.relu(p);
      const Tensor y = batch.add(batch.add(r, p), p);
      const Tensor z = batch.mul(p, p);
      REQUIRE_OK(batch.execute());
      std::vector<float> wp, wy, wz;
      for (double v : product.product) {
        const auto f = static_cast<float>(v);
        wp.push_back(f);
        wy.push_back(std::max(f, 0.0f) + 2 * f);
        wz.push_back(f * f);
      }
      if (keep) CHECK(cases::mismatch(read(batch, p), wp) == "");
      CHECK(cases::mismatch(read(batch, y), wy) == "");
      CHECK(cases::mismatch(read(batch, z), wz) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "the product used twice by one op is still its epilogue", "[fusion]") {
  Batch batch(shared_device());
  const Tensor p = batch.matmul(batch.upload(counting(4), {2, 2}), batch.upload({1.f, 2.f, 3.f, 4.f}, {2, 2}));
  const Tensor y = batch.mul(p, p);
  CHECK(run(batch, y) == std::vector<float>{9, 16, 121, 256});
  CHECK(batch.stats().dispatches == 1);
}

TEST_CASE_METHOD(DeviceTest, "a product over K = 0 with ops behind it is right", "[fusion]") {
  for (const Mode mode : modes) {
    Batch batch(shared_device(), options_for(mode));
    const Tensor p = batch.matmul(batch.upload({}, {2, 0}), batch.upload({}, {0, 3}));
    const Tensor y = batch.add(batch.offset(p, 1.0f), batch.upload({1.f, 2.f, 3.f}));
    CHECK(run(batch, y) == std::vector<float>{2, 3, 4, 2, 3, 4});
  }
}

TEST_CASE_METHOD(DeviceTest, "reductions take the ops behind them along", "[fusion]") {
  for (std::size_t n : {1u, 5u, 100u, 70001u}) {
    const std::vector<float> x = cases::random_integers(n, 3, n);
    const std::vector<float> y = cases::random_integers(n, 3, n + 1);
    const auto sum = static_cast<float>(cases::sum(x));
    const auto dot = static_cast<float>(cases::dot(x, y));
    const auto top = static_cast<float>(cases::maximum(x));
    const auto bottom = static_cast<float>(cases::minimum(x));
    for (const Mode mode : modes) {
      Batch batch(shared_device(), options_for(mode));
      const Tensor tx = batch.upload(x);
      const Tensor ty = batch.upload(y);
      const Tensor one = batch.upload({0.5f});
      const Tensor two = batch.upload({2.0f});
      const Tensor a = batch.offset(batch.scale(batch.sum(tx), 0.25f), 1.0f);
      const Tensor b = batch.sub(batch.relu(batch.dot(tx, ty)), one);
      const Tensor c = batch.mul(batch.add(batch.neg(batch.max(tx)), one), two);
      const Tensor d = batch.abs(batch.min(tx));
      const Tensor s = batch.sum(ty);
      const Tensor e = batch.mul(s, s);
      REQUIRE_OK(batch.execute());
      INFO(n << " elements, fuse " << mode.fuse);
      CHECK(read(batch, a) == std::vector<float>{sum * 0.25f + 1});
      CHECK(read(batch, b) == std::vector<float>{std::max(dot, 0.0f) - 0.5f});
      CHECK(read(batch, c) == std::vector<float>{(-top + 0.5f) * 2});
      CHECK(read(batch, d) == std::vector<float>{std::fabs(bottom)});
      const auto total = static_cast<float>(cases::sum(y));
      CHECK(read(batch, e) == std::vector<float>{total * total});
      CHECK(batch.stats().fused_operations == (mode.fuse ? 9 : 0));
      if (mode.fuse && n <= 100) CHECK(batch.stats().dispatches == 5);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "NaN reaches the end of a matmul's and a reduction's epilogue", "[fusion]") {
  std::vector<float> a(4 * 5, 1.0f);
  a[7] = std::nanf("");
  for (const Mode mode : modes) {
    Batch batch(shared_device(), options_for(mode));
    const Tensor x = batch.upload(a, {4, 5});
    const Tensor p = batch.relu(batch.clamp(batch.matmul(x, batch.upload(std::vector<float>(15, 1.0f), {5, 3})), 0, 9));
    const Tensor top = batch.relu(batch.max(x));
    const Tensor total = batch.max(batch.sum(x), batch.upload({3.0f}));
    REQUIRE_OK(batch.execute());
    const std::vector<float> got = read(batch, p);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK((i / 3 == 1 ? std::isnan(got[i]) : got[i] == 5.0f));
    CHECK(std::isnan(read(batch, top)[0]));
    CHECK(std::isnan(read(batch, total)[0]));
  }
}

TEST_CASE_METHOD(DeviceTest, "ops nobody can read do not run, and are counted", "[fusion]") {
  for (const Mode mode : modes) {
    BatchOptions options = options_for(mode);
    options.keep_marked_only = true;
    Batch batch(shared_device(), options);
    const Tensor x = batch.upload(counting(64));
    const Tensor y = batch.keep(batch.offset(x, 1.0f));
    const Tensor dead = batch.sum(batch.gelu(batch.scale(y, 3.0f)));
    const Buffer sink = Buffer::create(shared_device(), {64}).value();
    batch.store(batch.neg(x), sink);
    REQUIRE_OK(batch.execute());
    CHECK(batch.stats().dropped_operations == 3);
    CHECK(batch.read(dead).error().code == Errc::not_kept);
    CHECK(read(batch, y)[63] == 64.0f);
    CHECK(sink.read().value()[63] == -63.0f);
    if (mode.fuse) CHECK(batch.stats().dispatches <= 2);
  }
}

TEST_CASE_METHOD(DeviceTest, "a deep chain of ops that cannot fuse needs memory for a few tensors only", "[fusion]") {
  // Each product needs all of the one before.
  const std::uint64_t bytes = 64 * 64 * sizeof(float);
  Batch batch(shared_device());
  std::vector<float> identity(64 * 64, 0.0f);
  for (std::size_t i = 0; i < 64; ++i) identity[i * 65] = 1.0f;
  const Tensor one = batch.upload(identity, {64, 64});
  Tensor x = batch.upload(counting(64 * 64), {64, 64});
  for (int i = 0; i < 100; ++i) x = batch.matmul(x, one, {1.0f, Layout::kn, MatmulKernel::naive});
  CHECK(cases::mismatch(run(batch, x), counting(64 * 64)) == "");
  CHECK(batch.stats().arena_bytes <= 5 * bytes);
  CHECK(batch.stats().arena_bytes_without_reuse >= 102 * bytes);
}

TEST_CASE_METHOD(DeviceTest, "a buffer is updated in place by the op that reads it", "[fusion]") {
  check_update_in_place(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "who reads a buffer before it is stored to sees the old contents", "[fusion]") {
  check_old_contents(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "stores and later reads of one buffer keep their order", "[fusion]") {
  check_order_of_stores(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "one value stored to two buffers, and read, is everywhere", "[fusion]") {
  check_two_stores(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "an upload or import stored straight to a buffer is copied", "[fusion]") {
  for (const Mode mode : modes) {
    const Buffer from = Buffer::from(shared_device(), counting(40)).value();
    const Buffer to = Buffer::create(shared_device(), {40}).value();
    const Buffer other = Buffer::create(shared_device(), {40}).value();
    Batch batch(shared_device(), options_for(mode));
    batch.store(batch.import_buffer(from), to);
    batch.store(batch.upload(std::vector<float>(40, 4.0f)), other);
    REQUIRE_OK(batch.execute());
    CHECK(to.read().value() == counting(40));
    CHECK(other.read().value() == std::vector<float>(40, 4.0f));
  }
}

TEST_CASE_METHOD(DeviceTest, "fusing on small devices gives the same results", "[fusion]") {
  for (int which = 0; which < 3; ++which) {
    DeviceOptions options = checked_options();
    if (which == 0) options.simulate.staged_memory = true;
    if (which == 1) options.simulate.max_group_invocations = 3;
    if (which == 2) {
      options.simulate.max_group_count = 11;
      options.simulate.max_loop_iterations = 64;
      options.simulate.max_shared_bytes = 256;
    }
    const Device device = open_device(options);
    Cook cook(static_cast<std::uint64_t>(100 + which));
    for (int round = 0; round < 2; ++round) check(device, cook.exact(8), true);
    check_layer(device, make_layer(5, 6, 7, Layout::nk, MatmulKernel::naive), 1);
  }
}

TEST_CASE_METHOD(DeviceTest, "past its limit of fused programs a device makes no further pipelines for them",
                 "[fusion]") {
  using Record = Tensor (*)(Batch&, Tensor);
  const Record ops[] = {
      [](Batch& b, Tensor x) { return b.relu(x); }, [](Batch& b, Tensor x) { return b.neg(x); },
      [](Batch& b, Tensor x) { return b.abs(x); },  [](Batch& b, Tensor x) { return b.scale(x, 2.0f); },
      [](Batch& b, Tensor x) { return b.copy(x); }, [](Batch& b, Tensor x) { return b.offset(x, 1.0f); },
  };
  const std::size_t count = std::size(ops);
  const std::size_t programs = 24;
  for (const std::size_t limit : {std::size_t{0}, std::size_t{3}, std::size_t{1000}}) {
    DeviceOptions options = checked_options();
    options.max_fused_programs = limit;
    const Device device = open_device(options);
    std::vector<std::uint64_t> fused;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < programs; ++i) {
        const std::size_t chain[] = {i % count, (i / count + 1) % count, (i * 5 + 2) % count};
        std::vector<std::vector<float>> results;
        for (const bool fuse : {true, false}) {
          Batch batch(device, options_for({fuse, true}));
          Tensor x = batch.upload(cases::random_integers(64, 9, i));
          for (std::size_t step : chain) x = ops[step](batch, x);
          results.push_back(run(batch, x));
          if (!fuse) continue;
          // A program that was fused once stays so, and one that was refused is refused again.
          if (round == 0) fused.push_back(batch.stats().fused_operations);
          CHECK(batch.stats().fused_operations == fused[i]);
          CHECK(batch.stats().dispatches + batch.stats().fused_operations == 3);
        }
        INFO("limit " << limit << ", program " << i);
        CHECK(cases::mismatch(results[0], results[1]) == "");
      }
    }
    INFO("limit " << limit << ", " << device.stats().pipelines_created << " pipelines");
    CHECK(device.stats().pipelines_created <= std::min(limit, programs) + count);
    const auto whole = static_cast<std::size_t>(std::count(fused.begin(), fused.end(), 2u));
    CHECK(whole >= std::min(limit, programs));
    CHECK((limit < programs) == (whole < programs));
  }
}

TEST_CASE_METHOD(DeviceTest, "programs that a device refuses to fuse give the same results", "[fusion]") {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{2}}) {
    DeviceOptions options = checked_options();
    options.max_fused_programs = limit;
    const Device device = open_device(options);
    Cook cook(50);
    for (int round = 0; round < 12; ++round) {
      INFO("limit " << limit << ", round " << round);
      const BatchStats stats = check(device, cook.exact(1 + cook.below(14)), true);
      if (limit == 0) CHECK(stats.fused_operations == 0);
    }
    check_update_in_place(device);  // a store is no step of a program
    check_old_contents(device);
    check_order_of_stores(device);
    check_two_stores(device);
  }
}

TEST_CASE_METHOD(DeviceTest, "a matmul whose epilogue is refused runs it as ops of their own", "[fusion]") {
  DeviceOptions options = checked_options();
  options.max_fused_programs = 0;
  const Device device = open_device(options);
  const std::vector<float> a = cases::random_integers(6 * 5, 4, 1);
  const std::vector<float> b = cases::random_integers(5 * 8, 4, 2);
  const cases::MatmulReference product = cases::matmul(a, b, 6, 5, 8, Layout::kn);
  Batch batch(device);
  MatmulOptions naive;
  naive.kernel = MatmulKernel::naive;
  const Tensor p = batch.matmul(batch.upload(a, {6, 5}), batch.upload(b, {5, 8}), naive);
  const Tensor y = batch.relu(batch.add(p, batch.upload(counting(8))));
  const Tensor total = batch.neg(batch.offset(batch.sum(y), 1.0f));
  (void)batch.keep(y);
  REQUIRE_OK(batch.execute());
  std::vector<float> want;
  double sum = 0;
  for (std::size_t i = 0; i < product.product.size(); ++i) {
    want.push_back(std::max(static_cast<float>(product.product[i]) + static_cast<float>(i % 8), 0.0f));
    sum += double{want.back()};
  }
  CHECK(cases::mismatch(read(batch, y), want) == "");
  CHECK(read(batch, total) == std::vector<float>{-static_cast<float>(sum + 1)});
  CHECK(batch.stats().fused_operations == 0);
  CHECK(batch.stats().dispatches == 6);
}

}  // namespace brontes::test
