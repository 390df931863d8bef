// The same device, program and input give the same bits, whenever and however it is run.
#include "fixture.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace brontes::test {
namespace {

constexpr std::int32_t out_of_device_memory = -2;

/// Bits, by the name of what they are the result of.
using Bits = std::vector<std::pair<std::string, std::vector<std::uint32_t>>>;

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

/// What differs, or nothing.
std::string difference(const Bits& got, const Bits& want) {
  if (got.size() != want.size()) return "another number of results";
  std::string text;
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::size_t count = 0;
    if (got[i].second.size() != want[i].second.size()) return want[i].first + " has another size";
    for (std::size_t j = 0; j < got[i].second.size(); ++j) count += got[i].second[j] != want[i].second[j] ? 1 : 0;
    if (count != 0) text += want[i].first + " differs in " + std::to_string(count) + " elements; ";
  }
  return text;
}

/// Everything whose result could depend on the order of additions, on what is fused with what, or on how long something
/// takes. The numbers are such that any other order shows.
class Model {
 public:
  explicit Model(const Device& device, const BatchOptions& options = {}) : Model(device, Batch(device, options)) {}
  Model(const Device& device, Batch empty) : batch(std::move(empty)) {
    const Tensor x = input(1'000'003);
    const Tensor y = input(1'000'003);
    const Tensor chain = batch.gelu(batch.scale(batch.add(x, y), 1.25f));
    result("a fused chain", batch.keep(batch.log(batch.offset(batch.exp(batch.sub(chain, y)), 0.5f))));
    result("sum", batch.sum(batch.mul(x, x)));
    result("sum of a chain", batch.sum(batch.tanh(chain)));
    result("dot", batch.dot(x, y));
    result("max", batch.max(batch.sigmoid(x)));
    const Tensor rows = input(Shape(37, 1000));
    result("broadcast", batch.swish(batch.div(rows, batch.offset(batch.abs(input(1000)), 1.0f))));

    const Tensor wide = input(Shape(5, 20'011));
    result("softmax", batch.softmax(batch.scale(wide, 3.0f)));
    result("log_softmax of columns", batch.log_softmax(rows, 0));
    result("layer_norm", batch.layer_norm(rows, input(1000), input(1000)));
    result("rms_norm", batch.rms_norm(wide));
    result("cumsum", batch.cumsum(wide));
    result("sums of columns", batch.sum(rows, {0}));
    result("logsumexp of rows", batch.logsumexp(wide, {1}));
    result("a mean over two blocks of axes", batch.mean(batch.reshape(rows, Shape(37, 20, 50)), {0, 2}));
    result("a product per matrix", batch.matmul(input(Shape(3, 17, 129)), input(Shape(3, 129, 20))));

    product("one row", 1, 700, 90, {});
    product("few rows", 6, 700, 90, {1.0f, Layout::nk});
    product("ragged", 37, 131, 53, {});
    product("many rows", 96, 160, 96, {0.5f, Layout::nk});
    product("one row of long k", 1, 5000, 8, {1.0f, Layout::nk, MatmulKernel::gemv});
    product("slices of k", 20, 6000, 24, {1.0f, Layout::kn, MatmulKernel::tiled});
    for (MatmulKernel kernel :
         {MatmulKernel::naive, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
      product(to_string(kernel), 40, 203, 72, {1.0f, Layout::kn, kernel});
    }
    for (DType type : {DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
      weights.push_back(Weight::from(device, numbers(72 * 256), 72, 256, type).value());
      for (std::uint64_t m : {std::uint64_t{1}, std::uint64_t{40}}) {
        const Tensor w = batch.import_weight(weights.back());
        result(std::string(to_string(type)) + ", m = " + std::to_string(m),
               batch.relu(batch.linear(input(Shape(m, 256)), w, input(72))));
      }
    }
  }

  template <class Source>
  Bits read(const Source& source) const {
    Bits bits;
    for (const auto& [name, tensor] : results) {
      const Result<std::vector<float>> values = source.read(tensor);
      // An error is no result of the right size.
      bits.emplace_back(name, values ? bits_of(*values) : std::vector<std::uint32_t>());
    }
    return bits;
  }

  Batch batch;
  std::vector<std::pair<std::string, Tensor>> results;

 private:
  std::vector<float> numbers(std::size_t count) { return cases::random_values(count, -1, 1, ++seed); }
  Tensor input(Shape shape) { return batch.upload(numbers(shape.count()), shape); }
  void result(std::string name, Tensor x) { results.emplace_back(std::move(name), x); }
  void product(const char* name, std::uint64_t m, std::uint64_t k, std::uint64_t n, const MatmulOptions& options) {
    const Shape second = options.layout == Layout::kn ? Shape(k, n) : Shape(n, k);
    result(name, batch.gelu(batch.add(batch.matmul(input(Shape(m, k)), input(second), options), input(n))));
  }

  std::uint64_t seed = 0;
  std::vector<Weight> weights;
};

Bits execute(const Device& device, const BatchOptions& options = {}) {
  Model model(device, options);
  REQUIRE_OK(model.batch.execute());
  return model.read(model.batch);
}

/// What all others must equal.
const Bits& expected() {
  static const Bits bits = [] {
    REQUIRE(explain_matmul(shared_device(), 20, 6000, 24, {1.0f, Layout::kn, MatmulKernel::tiled}).slices > 1);
    Bits first = execute(shared_device());
    for (const auto& [name, values] : first) {
      INFO(name);
      REQUIRE_FALSE(values.empty());
    }
    return first;
  }();
  return bits;
}

DeviceOptions staged_options() {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = true;
  return options;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a batch that is recorded again gives the same bits", "[determinism]") {
  for (int i = 0; i < 3; ++i) CHECK(difference(execute(shared_device()), expected()) == "");
  // Also one that has the memory of an earlier one, and whatever is left in it.
  Model first(shared_device());
  REQUIRE_OK(first.batch.execute());
  Batch used = std::move(first.batch);
  used.reset();
  Model again(shared_device(), std::move(used));
  REQUIRE_OK(again.batch.execute());
  CHECK(difference(again.read(again.batch), expected()) == "");
}

TEST_CASE_METHOD(DeviceTest, "a program gives the bits of a batch in every run", "[determinism]") {
  Model model(shared_device());
  Program program = model.batch.compile().value();
  for (int i = 0; i < (soak() ? 500 : 5); ++i) {
    INFO("run " << i);
    REQUIRE_OK(program.run());
    CHECK(difference(model.read(program), expected()) == "");
  }
  // Runs that follow each other without a wait.
  for (int i = 0; i < 4; ++i) REQUIRE_OK(program.submit().error());
  CHECK(difference(model.read(program), expected()) == "");
}

TEST_CASE_METHOD(DeviceTest, "threads that run the same at the same time get the same bits", "[determinism][threads]") {
  const Bits& want = expected();
  std::string problems[4];
  std::vector<std::thread> threads;
  for (std::string& problem : problems) {
    threads.emplace_back([&] {
      for (int i = 0; i < (soak() ? 50 : 2) && problem.empty(); ++i) {
        Model model(shared_device());
        const Error error = model.batch.execute();
        problem = error ? error.message : difference(model.read(model.batch), want);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE_METHOD(DeviceTest, "a device that is opened anew gives the same bits, with staged memory too",
                 "[determinism]") {
  CHECK(difference(execute(open_device()), expected()) == "");
  const Device staged = open_device(staged_options());
  CHECK(difference(execute(staged), expected()) == "");
  BatchOptions parts;
  parts.work_per_submit = 100'000;
  CHECK(difference(execute(staged, parts), expected()) == "");
}

TEST_CASE_METHOD(DeviceTest, "runs in any number of parts, and memory that is not shared, give the same bits",
                 "[determinism]") {
  for (std::uint64_t budget : {std::uint64_t{1}, std::uint64_t{50'000}, std::uint64_t{3'000'000}}) {
    INFO("work_per_submit = " << budget);
    BatchOptions options;
    options.work_per_submit = budget;
    CHECK(difference(execute(shared_device(), options), expected()) == "");
  }
  BatchOptions apart;
  apart.reuse_memory = false;
  CHECK(difference(execute(shared_device(), apart), expected()) == "");
}

TEST_CASE_METHOD(DeviceTest, "a run that failed and is tried again gives the same bits", "[determinism][faults]") {
  (void)expected();
  const Spy spy;
  for (const bool staged : {false, true}) {
    INFO((staged ? "staged" : "mapped") << " memory");
    const Device device = open_device(staged ? staged_options() : checked_options());
    Model model(device);
    Program program = model.batch.compile().value();
    for (const char* function : {"vkQueueSubmit", "vkWaitSemaphores"}) {
      INFO(function);
      spy.fail(function, 0, out_of_device_memory);
      CHECK(program.run().code == Errc::out_of_memory);
      REQUIRE_OK(program.run());
      CHECK(difference(model.read(program), expected()) == "");
    }
    spy.fail("vkQueueSubmit", 0, out_of_device_memory);
    CHECK(model.batch.execute().code == Errc::out_of_memory);
    REQUIRE_OK(model.batch.execute());
    CHECK(difference(model.read(model.batch), expected()) == "");
  }
}

}  // namespace brontes::test
