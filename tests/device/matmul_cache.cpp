// MatmulCache: named weights, and products with them that allocate nothing once warm.
#include "allocations.hpp"
#include "fixture.hpp"
#include "reference.hpp"
#include "stored_weights.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

namespace brontes::test {
namespace {

constexpr Activation all_activations[] = {Activation::none,  Activation::relu, Activation::sigmoid,  Activation::tanh,
                                          Activation::swish, Activation::gelu, Activation::gelu_tanh};

DeviceOptions simulated(bool staged, std::uint64_t max_storage_range = 0) {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = staged;
  options.simulate.max_storage_range = max_storage_range;
  return options;
}

// Calls `test` with a device whose memory is mapped where the driver allows, and with one that stages.
template <class Test>
void for_both_memories(Test test) {
  test(shared_device());
  const Device staged = open_device(simulated(true));
  test(staged);
}

// Empty when the product with weight `name`, whose elements are `values`, is right for m rows.
std::string wrong_product(MatmulCache& cache, const char* name, const std::vector<float>& values, std::uint64_t m) {
  const Shape shape = cache.info(name).value().shape;
  const std::vector<float> x = cases::random_values(m * shape[1], -1, 1, 100 + m);
  std::vector<float> y(m * shape[0], -99.0f);
  if (const Error error = cache.matmul(name, x, y, m)) return error.message;
  return cases::mismatch(y, cases::matmul(x, values, m, shape[1], shape[0], Layout::nk), cases::matmul_tolerance);
}

// activation(alpha x W^T + bias) in double precision. Magnitudes are such that `matmul_tolerance` of them, plus the
// tolerance of the activation, is what a result may differ by: no activation is steeper than 1.2.
struct Expected {
  std::vector<double> values;
  std::vector<double> allowed;
};

Expected expected(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& bias,
                  std::uint64_t m, std::uint64_t k, std::uint64_t n, const MatmulEpilogue& epilogue) {
  const auto product = cases::matmul(x, w, m, k, n, Layout::nk, epilogue.alpha);
  const cases::ElementwiseCase* op = cases::find_elementwise_case(to_string(epilogue.activation));
  Expected result;
  for (std::size_t i = 0; i < m * n; ++i) {
    const bool biased = epilogue.bias && !bias.empty();
    const double sum = product.product[i] + (biased ? double{bias[i % n]} : 0.0);
    const double magnitude = product.magnitude[i] + (biased ? std::fabs(double{bias[i % n]}) : 0.0);
    const double value = op != nullptr ? op->reference(sum, 0, 0, 0, 0) : sum;
    result.values.push_back(value);
    result.allowed.push_back(1.2 * cases::matmul_tolerance * magnitude +
                             (op != nullptr ? op->tolerance.absolute + op->tolerance.relative * std::fabs(value) : 0));
  }
  return result;
}

std::string mismatch(const std::vector<float>& got, const Expected& want) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::fabs(double{got[i]} - want.values[i]) <= want.allowed[i])) {
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + " instead of " +
             std::to_string(want.values[i]);
    }
  }
  return {};
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "cached products are right for every storage type and shape", "[matmul_cache]") {
  struct Size {
    std::uint64_t n, k;
  };
  const std::vector<Size> plain = {{1, 1}, {5, 3}, {31, 67}, {33, 64}, {65, 130}, {257, 36}};
  const std::vector<Size> blocks = {{1, 32}, {33, 64}, {31, 96}, {257, 160}, {5, 1056}};
  MatmulCache cache(shared_device());
  for (DType type : all_types) {
    for (const Size& size : quantized(type) ? blocks : plain) {
      const std::string name = std::string(to_string(type)) + " " + to_string(Shape(size.n, size.k));
      const StoredWeights stored = random_stored(type, size.n, size.k, size.n * 1000 + size.k);
      REQUIRE_OK(cache.upload_stored(name, stored.bytes, size.n, size.k, type));
      for (std::uint64_t m : {1u, 2u, 3u, 8u, 17u}) {
        INFO(name << " m = " << m);
        CHECK(wrong_product(cache, name.c_str(), stored.values, m) == "");
      }
    }
  }
  CHECK(cache.weight_count() == 3 * plain.size() + 2 * blocks.size());
}

TEST_CASE_METHOD(DeviceTest, "weights given as f32 are converted to every storage type", "[matmul_cache]") {
  MatmulCache cache(shared_device());
  for (DType type : all_types) {
    INFO(to_string(type));
    const std::vector<float> values = exact_values(type, 33, 96, 4);
    REQUIRE_OK(cache.upload_weight(to_string(type), values, 33, 96, type));
    for (std::uint64_t m : {1u, 8u}) CHECK(wrong_product(cache, to_string(type), values, m) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "every kernel gives the cache the same products", "[matmul_cache]") {
  for (MatmulKernel kernel :
       {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
    MatmulCacheOptions options;
    options.kernel = kernel;
    MatmulCache cache(shared_device(), options);
    const std::vector<float> values = cases::random_values(33 * 70, -1, 1, 6);
    REQUIRE_OK(cache.upload_weight("w", values, 33, 70));
    for (std::uint64_t m : {1u, 3u, 17u}) {
      if (kernel == MatmulKernel::gemv && m > 1) continue;
      INFO(to_string(kernel) << " m = " << m);
      CHECK(wrong_product(cache, "w", values, m) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "bias, activation and alpha are part of the product's one dispatch", "[matmul_cache]") {
  constexpr std::uint64_t n = 37, k = 64;
  for (DType type : {DType::f32, DType::q4_0}) {
    const std::vector<float> w = exact_values(type, n, k, 1);
    const std::vector<float> bias = cases::random_values(n, -2, 2, 2);
    MatmulCache cache(shared_device());
    REQUIRE_OK(cache.upload_weight("w", w, n, k, type, bias));
    for (Activation activation : all_activations) {
      for (std::uint64_t m : {1u, 5u}) {
        MatmulEpilogue epilogue;
        epilogue.activation = activation;
        epilogue.alpha = m == 1 ? 1.0f : -0.75f;
        INFO(to_string(type) << " " << to_string(activation) << " m = " << m);
        const std::vector<float> x = cases::random_values(m * k, -1, 1, 3 + m);
        const Expected want = expected(x, w, bias, m, k, n, epilogue);
        std::vector<float> y(m * n);
        const BatchStats before = cache.stats();
        const std::uint64_t submits = shared_device().stats().submits;
        REQUIRE_OK(cache.matmul("w", x, y, m, epilogue));
        const BatchStats after = cache.stats();
        CHECK(mismatch(y, want) == "");
        CHECK(after.dispatches == before.dispatches + 1);
        CHECK(after.barriers == before.barriers);
        CHECK(after.submits == before.submits + 1);
        CHECK(shared_device().stats().submits == submits + 1);
        CHECK(after.transfers_up == before.transfers_up + 1);
        CHECK(after.transfers_down == before.transfers_down + 1);
        CHECK(after.bytes_up == before.bytes_up + m * k * 4);
        CHECK(after.bytes_down == before.bytes_down + m * n * 4);
        CHECK(after.fused_operations == before.fused_operations + (activation == Activation::none ? 1 : 2));

        // The same without fusion, from a batch.
        BatchOptions unfused;
        unfused.fuse = false;
        Batch batch(shared_device(), unfused);
        const Tensor product = batch.matmul(batch.upload(x, {m, k}), batch.import_weight(**cache.weight("w")),
                                            {epilogue.alpha, Layout::nk, MatmulKernel::automatic});
        Tensor result = batch.add(product, batch.upload(bias));
        switch (activation) {
          case Activation::none: break;
          case Activation::relu: result = batch.relu(result); break;
          case Activation::sigmoid: result = batch.sigmoid(result); break;
          case Activation::tanh: result = batch.tanh(result); break;
          case Activation::swish: result = batch.swish(result); break;
          case Activation::gelu: result = batch.gelu(result); break;
          case Activation::gelu_tanh: result = batch.gelu_tanh(result); break;
        }
        CHECK(mismatch(run(batch, result), want) == "");
        CHECK(batch.stats().dispatches == (activation == Activation::none ? 2 : 3));
      }
    }
    // The bias can be left out for a call.
    MatmulEpilogue plain;
    plain.bias = false;
    const std::vector<float> x = cases::random_values(k, -1, 1, 3);
    std::vector<float> y(n);
    REQUIRE_OK(cache.matmul("w", x, y, 1, plain));
    CHECK(mismatch(y, expected(x, w, bias, 1, k, n, plain)) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "a warm cache allocates nothing and creates no pipeline", "[matmul_cache]") {
  for_both_memories([](const Device& device) {
    MatmulCache cache(device);
    const std::vector<float> values = exact_values(DType::q4_0, 40, 96, 1);
    const std::vector<float> bias = cases::random_values(40, -1, 1, 2);
    REQUIRE_OK(cache.upload_weight("a weight with a name too long for a small string", values, 40, 96));
    REQUIRE_OK(cache.upload_weight("b", values, 40, 96, DType::q8_0, bias));
    struct Call {
      const char* name;
      std::uint64_t m;
      MatmulEpilogue epilogue;
      std::vector<float> x, y, want;
    };
    std::vector<Call> calls;
    for (const char* name : {"a weight with a name too long for a small string", "b"}) {
      for (std::uint64_t m : {1u, 4u}) {
        for (Activation activation : {Activation::none, Activation::gelu}) {
          Call call{name, m, {}, cases::random_values(m * 96, -1, 1, m), std::vector<float>(m * 40), {}};
          call.epilogue.activation = activation;
          calls.push_back(std::move(call));
        }
      }
    }
    // The largest come last, so that growing has dropped programs: the second round makes them again.
    for (int round = 0; round < 2; ++round) {
      for (Call& call : calls) REQUIRE_OK(cache.matmul(call.name, call.x, call.y, call.m, call.epilogue));
    }
    for (Call& call : calls) call.want = call.y;
    CHECK(cache.program_count() == calls.size());

    std::size_t errors = 0;
    std::size_t differences = 0;
    const DeviceStats before = device.stats();
    const HostAllocations host = allocations_of([&] {
      for (int round = 0; round < 50; ++round) {
        for (Call& call : calls) {
          errors += static_cast<bool>(cache.matmul(call.name, call.x, call.y, call.m, call.epilogue));
          differences += std::memcmp(call.y.data(), call.want.data(), call.y.size() * sizeof(float)) != 0;
        }
      }
    });
    const DeviceStats after = device.stats();
    CHECK(errors == 0);
    CHECK(differences == 0);
    CHECK(host.ours == 0);
    CHECK(after.allocations == before.allocations);
    CHECK(after.live_buffers == before.live_buffers);
    CHECK(after.live_bytes == before.live_bytes);
    CHECK(after.pipelines_created == before.pipelines_created);
    CHECK(after.pipelines_requested == before.pipelines_requested);
    CHECK(after.submits == before.submits + 50 * calls.size());
  });
}

TEST_CASE_METHOD(DeviceTest, "the shared buffers grow in powers of two and can be trimmed", "[matmul_cache]") {
  for_both_memories([](const Device& device) {
    const std::uint64_t live = device.stats().live_bytes;
    {
      MatmulCache cache(device);
      const std::vector<float> values = cases::random_values(50 * 20, -1, 1, 1);
      REQUIRE_OK(cache.upload_weight("w", values, 50, 20));
      REQUIRE_OK(cache.upload_weight("v", Span<const float>(values.data(), 400), 20, 20));
      const std::uint64_t weights = cache.weight_bytes();
      CHECK(cache.io_bytes() == 0);
      CHECK(cache.program_count() == 0);
      CHECK(wrong_product(cache, "w", values, 1) == "");
      const std::uint64_t small = cache.io_bytes();
      CHECK(small >= 70 * sizeof(float));
      CHECK(wrong_product(cache, "v", values, 1) == "");
      CHECK(cache.program_count() == 2);

      // More rows: the buffers grow, once for all weights, and keep their size.
      const std::uint64_t allocations = device.stats().allocations;
      CHECK(wrong_product(cache, "w", values, 100) == "");
      const std::uint64_t large = cache.io_bytes();
      CHECK(large >= 100 * 70 * sizeof(float));
      CHECK(large > small);
      CHECK(cache.program_count() == 1);
      if (device.info().mapped_memory) {
        CHECK(std::has_single_bit(large));
        CHECK(large < 4 * 100 * 70 * sizeof(float));
      }
      CHECK(device.stats().allocations > allocations);
      CHECK(wrong_product(cache, "v", values, 100) == "");
      CHECK(wrong_product(cache, "v", values, 3) == "");
      CHECK(wrong_product(cache, "w", values, 1) == "");
      CHECK(cache.io_bytes() == large);
      CHECK(cache.program_count() == 4);
      CHECK(cache.stats().arena_bytes <= large);

      const std::uint64_t full = device.stats().live_bytes;
      cache.trim();
      CHECK(cache.io_bytes() == 0);
      CHECK(cache.program_count() == 0);
      CHECK(cache.weight_bytes() == weights);
      CHECK(device.stats().live_bytes <= full - large);
      CHECK(device.stats().live_bytes == live + weights);
      cache.trim();
      CHECK(wrong_product(cache, "w", values, 1) == "");
      CHECK(cache.io_bytes() == small);
    }
    CHECK(device.stats().live_bytes == live);
  });
}

TEST_CASE_METHOD(DeviceTest, "the cache keeps no more programs than it may, and those used last", "[matmul_cache]") {
  const Device& device = shared_device();
  MatmulCacheOptions options;
  options.max_programs = 3;
  MatmulCache cache(device, options);
  const std::vector<float> values = cases::random_values(6 * 4, -1, 1, 1);
  REQUIRE_OK(cache.upload_weight("w", values, 6, 4));
  CHECK(wrong_product(cache, "w", values, 8) == "");
  CHECK(wrong_product(cache, "w", values, 1) == "");
  CHECK(wrong_product(cache, "w", values, 2) == "");
  CHECK(wrong_product(cache, "w", values, 8) == "");
  CHECK(cache.program_count() == 3);
  CHECK(wrong_product(cache, "w", values, 3) == "");  // in the place of 1
  CHECK(cache.program_count() == 3);
  const std::uint64_t before = device.stats().pipelines_requested;
  CHECK(wrong_product(cache, "w", values, 8) == "");
  CHECK(wrong_product(cache, "w", values, 2) == "");
  CHECK(wrong_product(cache, "w", values, 3) == "");
  CHECK(device.stats().pipelines_requested == before);
  CHECK(wrong_product(cache, "w", values, 1) == "");
  CHECK(device.stats().pipelines_requested > before);
  CHECK(cache.program_count() == 3);

  options.max_programs = 0;  // counts as one
  MatmulCache smallest(device, options);
  REQUIRE_OK(smallest.upload_weight("w", values, 6, 4));
  for (std::uint64_t m : {1u, 2u, 1u}) CHECK(wrong_product(smallest, "w", values, m) == "");
  CHECK(smallest.program_count() == 1);
}

TEST_CASE_METHOD(DeviceTest, "the cache says what it holds", "[matmul_cache]") {
  MatmulCache cache(shared_device());
  CHECK(cache.weight_count() == 0);
  CHECK(cache.weight_bytes() == 0);
  CHECK(cache.names().empty());
  CHECK_FALSE(cache.contains("a"));
  REQUIRE_OK(cache.upload_weight("b", std::vector<float>(64 * 32), 64, 32, DType::q4_0, std::vector<float>(64)));
  REQUIRE_OK(cache.upload_weight("a", std::vector<float>(6), 3, 2));
  CHECK(cache.contains("a"));
  CHECK(cache.contains("b"));
  CHECK(cache.weight_count() == 2);
  CHECK(cache.names() == std::vector<std::string>{"a", "b"});
  const CachedWeightInfo a = cache.info("a").value();
  CHECK(a.shape == Shape(3, 2));
  CHECK(a.dtype == DType::f32);
  CHECK(a.parts == 1);
  CHECK(a.bytes == 32);  // 24, in whole vec4s
  CHECK_FALSE(a.bias);
  const CachedWeightInfo b = cache.info("b").value();
  CHECK(b.shape == Shape(64, 32));
  CHECK(b.dtype == DType::q4_0);
  CHECK(b.bytes == 64 * 16 + 64 * 2 + 64 * 4);  // elements, f16 scales and the bias
  CHECK(b.bias);
  CHECK(cache.weight_bytes() == a.bytes + b.bytes);
  CHECK(cache.info("c").error().code == Errc::not_found);
  CHECK(std::string(to_string(Activation::gelu_tanh)) == "gelu_tanh");
  CHECK(std::string(to_string(Activation::none)) == "none");
  CHECK(std::string(to_string(static_cast<Activation>(99))) == "unknown");
}

TEST_CASE_METHOD(DeviceTest, "evicted weights are gone and give their memory back", "[matmul_cache]") {
  const Device& device = shared_device();
  const std::uint64_t live = device.stats().live_bytes;
  MatmulCache cache(device);
  const std::vector<float> values = cases::random_values(10 * 8, -1, 1, 1);
  REQUIRE_OK(cache.upload_weight("a", values, 10, 8));
  REQUIRE_OK(cache.upload_weight("b", values, 8, 10));
  CHECK(wrong_product(cache, "a", values, 2) == "");
  CHECK(wrong_product(cache, "b", values, 2) == "");
  CHECK(cache.evict("a"));
  CHECK_FALSE(cache.evict("a"));
  CHECK_FALSE(cache.contains("a"));
  CHECK(cache.program_count() == 1);
  CHECK(cache.weight_bytes() == cache.info("b").value().bytes);
  std::vector<float> y(20);
  CHECK(cache.matmul("a", std::vector<float>(16), y, 2).code == Errc::not_found);
  CHECK(wrong_product(cache, "b", values, 2) == "");
  // The name is free again, for something else.
  REQUIRE_OK(cache.upload_weight("a", values, 16, 5));
  CHECK(wrong_product(cache, "a", values, 2) == "");
  const std::uint64_t io = cache.io_bytes();
  cache.clear();
  CHECK(cache.weight_count() == 0);
  CHECK(cache.weight_bytes() == 0);
  CHECK(cache.program_count() == 0);
  CHECK(cache.io_bytes() == io);
  cache.trim();
  CHECK(device.stats().live_bytes == live);
}

TEST_CASE_METHOD(DeviceTest, "a name is replaced only when asked, and then at once", "[matmul_cache]") {
  MatmulCache cache(shared_device());
  const std::vector<float> first = cases::random_values(12 * 32, -1, 1, 1);
  const std::vector<float> second = exact_values(DType::q8_0, 5, 64, 2);
  REQUIRE_OK(cache.upload_weight("w", first, 12, 32, DType::f32, std::vector<float>(12, 100.0f)));
  Error error = cache.upload_weight("w", second, 5, 64);
  CHECK(error.code == Errc::already_exists);
  CHECK(contains(error.message, "'w'"));
  CHECK(contains(error.message, "[12, 32]"));
  CHECK(contains(error.message, "replace_weight"));
  CHECK(cache.upload_stored("w", std::vector<std::byte>(34), 1, 32, DType::q8_0).code == Errc::already_exists);
  error = cache.replace_weight("other", second, 5, 64);
  CHECK(error.code == Errc::not_found);
  CHECK(contains(error.message, "other"));
  CHECK(cache.weight_count() == 1);
  MatmulEpilogue plain;
  plain.bias = false;
  const std::vector<float> x(32, 1.0f);
  std::vector<float> y(12), again(12);
  REQUIRE_OK(cache.matmul("w", x, y, 1, plain));

  // What is wrong with the new one leaves the old one as it was.
  CHECK(cache.replace_weight("w", second, 5, 63).code == Errc::shape_mismatch);
  CHECK(cache.replace_weight("w", std::vector<float>(5 * 64, std::nanf("")), 5, 64, DType::q8_0).code ==
        Errc::invalid_argument);
  CHECK(cache.replace_weight("w", second, 5, 64, DType::f32, std::vector<float>(4)).code == Errc::shape_mismatch);
  CHECK(cache.info("w").value().shape == Shape(12, 32));
  CHECK(cache.info("w").value().bias);
  REQUIRE_OK(cache.matmul("w", x, again, 1, plain));
  CHECK(again == y);

  REQUIRE_OK(cache.replace_weight("w", second, 5, 64, DType::q8_0));
  CHECK(cache.weight_count() == 1);
  CHECK(cache.info("w").value().shape == Shape(5, 64));
  CHECK(cache.info("w").value().dtype == DType::q8_0);
  CHECK_FALSE(cache.info("w").value().bias);
  CHECK(wrong_product(cache, "w", second, 1) == "");
  const StoredWeights stored = random_stored(DType::q4_0, 7, 32, 3);
  REQUIRE_OK(cache.replace_stored("w", stored.bytes, 7, 32, DType::q4_0));
  CHECK(wrong_product(cache, "w", stored.values, 1) == "");
}

TEST_CASE_METHOD(DeviceTest, "weights past the range of one binding are split, never dropped", "[matmul_cache]") {
  for (bool staged : {false, true}) {
    const Device device = open_device(simulated(staged, 16384));
    MatmulCache cache(device);
    for (DType type : all_types) {
      constexpr std::uint64_t n = 1003, k = 96;
      INFO(to_string(type) << (staged ? " staged" : ""));
      const StoredWeights stored = random_stored(type, n, k, 5);
      const std::vector<float> bias = cases::random_values(n, -1, 1, 6);
      REQUIRE_OK(cache.upload_stored(to_string(type), stored.bytes, n, k, type, bias));
      const CachedWeightInfo info = cache.info(to_string(type)).value();
      CHECK(info.parts > 1);
      for (std::uint64_t m : {1u, 3u}) {
        MatmulEpilogue epilogue;
        epilogue.activation = Activation::tanh;
        const std::vector<float> x = cases::random_values(m * k, -1, 1, 8);
        std::vector<float> y(m * n);
        const BatchStats before = cache.stats();
        REQUIRE_OK(cache.matmul(to_string(type), x, y, m, epilogue));
        CHECK(mismatch(y, expected(x, stored.values, bias, m, k, n, epilogue)) == "");
        CHECK(cache.stats().dispatches == before.dispatches + info.parts);
        CHECK(cache.stats().submits == before.submits + 1);
      }
    }
    CHECK(cache.weight_count() == std::size(all_types));
    // Results past it are refused, and nothing is lost.
    std::vector<float> y(5 * 1003);
    const Error error = cache.matmul("f16", std::vector<float>(5 * 96), y, 5);
    CHECK(error.code == Errc::limit_exceeded);
    CHECK(contains(error.message, "'f16'"));
    CHECK(contains(error.message, "16384"));
    CHECK(cache.weight_count() == std::size(all_types));
  }
}

TEST_CASE_METHOD(DeviceTest, "a cached weight is an operand of batches, and outlives its eviction", "[matmul_cache]") {
  MatmulCache cache(shared_device());
  const std::vector<float> values = exact_values(DType::f16, 9, 33, 1);
  REQUIRE_OK(cache.upload_weight("w", values, 9, 33, DType::f16));
  const std::vector<float> x = cases::random_values(2 * 33, -1, 1, 2);
  std::vector<float> want(2 * 9);
  REQUIRE_OK(cache.matmul("w", x, want, 2));

  Result<std::shared_ptr<const Weight>> weight = cache.weight("w");
  REQUIRE_OK(weight.error());
  CHECK((*weight)->shape() == Shape(9, 33));
  Batch batch(shared_device());
  const Tensor y = batch.linear(batch.upload(x, {2, 33}), batch.import_weight(**weight));
  REQUIRE_OK(cache.replace_weight("w", std::vector<float>(4), 2, 2));
  CHECK((*weight)->shape() == Shape(9, 33));
  weight = Error(Errc::io, "let go");
  CHECK(cache.evict("w"));
  CHECK(cases::mismatch(run(batch, y), want) == "");
  CHECK(batch.stats().bytes_up == 2 * 33 * sizeof(float));
  const Error error = cache.weight("w").error();
  CHECK(error.code == Errc::not_found);
  CHECK(contains(error.message, "upload_weight"));
}

TEST_CASE_METHOD(DeviceTest, "m = 0 and weights without elements are fine", "[matmul_cache]") {
  MatmulCache cache(shared_device());
  REQUIRE_OK(cache.upload_weight("w", counting(6), 3, 2));
  REQUIRE_OK(cache.upload_weight("no rows", std::vector<float>(), 0, 2));
  REQUIRE_OK(cache.upload_weight("no columns", std::vector<float>(), 3, 0, DType::f32, std::vector<float>{1, -2, 3}));
  const std::uint64_t submits = shared_device().stats().submits;
  REQUIRE_OK(cache.matmul("w", {}, {}, 0));
  REQUIRE_OK(cache.matmul("no rows", std::vector<float>(4), {}, 2));
  CHECK(shared_device().stats().submits == submits);
  CHECK(cache.io_bytes() == 0);
  std::vector<float> y(6);
  MatmulEpilogue epilogue;
  epilogue.activation = Activation::relu;
  REQUIRE_OK(cache.matmul("no columns", {}, y, 2, epilogue));
  CHECK(y == std::vector<float>{1, 0, 3, 1, 0, 3});
}

TEST_CASE_METHOD(DeviceTest, "input and output may be the same memory", "[matmul_cache]") {
  for_both_memories([](const Device& device) {
    MatmulCache cache(device);
    REQUIRE_OK(cache.upload_weight("swap", std::vector<float>{0, 1, 1, 0}, 2, 2));
    std::vector<float> x{1, 2, 3, 4};
    REQUIRE_OK(cache.matmul("swap", x, x, 2));
    CHECK(x == std::vector<float>{2, 1, 4, 3});
  });
}

TEST_CASE_METHOD(DeviceTest, "mistakes in calls of the cache are errors that say what to do", "[matmul_cache]") {
  MatmulCache cache(shared_device());
  std::vector<float> y(6, 7.0f);
  Error error = cache.matmul("fc1", counting(4), y, 2);
  CHECK(error.code == Errc::not_found);
  CHECK(contains(error.message, "'fc1'"));
  CHECK(contains(error.message, "upload_weight"));
  REQUIRE_OK(cache.upload_weight("fc2", counting(6), 3, 2));
  for (int i = 0; i < 20; ++i) REQUIRE_OK(cache.upload_weight("z" + std::to_string(i), counting(6), 3, 2));
  error = cache.matmul("fc1", counting(4), y, 2);
  CHECK(contains(error.message, "fc2"));
  CHECK(contains(error.message, "21"));
  CHECK(error.message.size() < 300);

  error = cache.matmul("fc2", counting(5), y, 2);
  CHECK(error.code == Errc::shape_mismatch);
  for (const char* part : {"'fc2'", "5 elements of input", "m = 2", "K = 2", "expected 4"}) {
    INFO(error.message << " lacks " << part);
    CHECK(contains(error.message, part));
  }
  error = cache.matmul("fc2", counting(4), Span<float>(y.data(), 5), 2);
  CHECK(error.code == Errc::shape_mismatch);
  for (const char* part : {"'fc2'", "5 elements of output", "m = 2", "N = 3", "expected 6"}) {
    INFO(error.message << " lacks " << part);
    CHECK(contains(error.message, part));
  }
  CHECK(cache.matmul("fc2", counting(4), {}, 0).code == Errc::shape_mismatch);
  CHECK(cache.matmul("fc2", Span<const float>(nullptr, 4), y, 2).code == Errc::null_data);
  CHECK(cache.matmul("fc2", counting(4), Span<float>(nullptr, 6), 2).code == Errc::null_data);
  CHECK(cache.matmul("fc2", counting(4), y, std::uint64_t{1} << 63).code == Errc::size_overflow);
  MatmulEpilogue odd;
  odd.activation = static_cast<Activation>(99);
  CHECK(cache.matmul("fc2", counting(4), y, 2, odd).code == Errc::invalid_argument);
  CHECK(y == std::vector<float>(6, 7.0f));

  CHECK(cache.upload_weight("", counting(6), 3, 2).code == Errc::invalid_argument);
  CHECK(cache.upload_weight("n", Span<const float>(nullptr, 6), 3, 2).code == Errc::null_data);
  CHECK(cache.upload_stored("n", Span<const std::byte>(nullptr, 24), 3, 2, DType::f32).code == Errc::null_data);
  error = cache.upload_weight("n", counting(6), 3, 3);
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "upload_weight 'n'"));
  CHECK(contains(error.message, "9"));
  error = cache.upload_weight("n", counting(6), 3, 2, DType::q8_0);
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "q8_0"));
  error = cache.upload_weight("n", counting(6), 3, 2, DType::f32, counting(2));
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "bias of 2"));
  CHECK(contains(error.message, "3 rows"));
  CHECK(cache.upload_weight("n", counting(6), 3, 2, DType::f32, Span<const float>(nullptr, 3)).code == Errc::null_data);
  CHECK_FALSE(cache.contains("n"));
  CHECK(cache.weight_count() == 21);
  REQUIRE_OK(cache.matmul("fc2", counting(4), y, 2));
  CHECK(y == std::vector<float>{1, 3, 5, 3, 13, 23});
}

TEST_CASE_METHOD(DeviceTest, "a cache of a moved-from device reports it, and a cache outlives its device",
                 "[matmul_cache]") {
  std::optional<Device> device = open_device();
  const Device moved = std::move(*device);
  MatmulCache orphan(*device);
  CHECK(orphan.upload_weight("w", counting(4), 2, 2).code == Errc::invalid_argument);
  std::vector<float> y(2);
  const Error error = orphan.matmul("w", counting(2), y, 1);
  CHECK(error.code == Errc::invalid_argument);
  CHECK(contains(error.message, "moved from"));
  CHECK(orphan.weight_count() == 0);
  orphan.trim();
  orphan.clear();

  device.emplace(open_device());
  MatmulCache first(*device);
  REQUIRE_OK(first.upload_weight("w", counting(4), 2, 2));
  device.reset();
  MatmulCache cache = std::move(first);
  REQUIRE_OK(cache.matmul("w", counting(2), y, 1));
  CHECK(y == std::vector<float>{1, 3});
}

TEST_CASE_METHOD(DeviceTest, "threads may call one cache at the same time, and several caches in parallel",
                 "[matmul_cache][threads]") {
  const Device& device = shared_device();
  constexpr int count = 4;
  const std::vector<float> common = cases::random_integers(8 * 8, 3, 1);
  MatmulCache shared(device);
  REQUIRE_OK(shared.upload_weight("common", common, 8, 8));
  std::vector<std::string> problems(count);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < count; ++id) {
    // Catch2's assertions are not for other threads.
    threads.emplace_back([&, id] {
      std::string& problem = problems[static_cast<std::size_t>(id)];
      const std::string mine = "weight of thread " + std::to_string(id);
      MatmulCache own(device);
      if (const Error e = own.upload_weight("common", common, 8, 8)) problem = e.message;
      for (int round = 0; round < 20 && problem.empty(); ++round) {
        const auto m = static_cast<std::uint64_t>(1 + (id + round) % 5);
        const std::vector<float> x = cases::random_integers(m * 8, 5, static_cast<std::uint64_t>(100 * id + round));
        const auto want = cases::matmul(x, common, m, 8, 8, Layout::nk);
        std::vector<float> y(m * 8);
        const auto check = [&](MatmulCache& cache, const std::string& name) {
          std::fill(y.begin(), y.end(), -1.0f);
          if (const Error e = cache.matmul(name, x, y, m)) problem = e.message;
          if (problem.empty()) problem = cases::mismatch(y, want, 0);
        };
        check(shared, "common");
        check(own, "common");
        if (const Error e = shared.upload_weight(mine, common, 8, 8, round % 2 == 0 ? DType::f32 : DType::f16)) {
          problem = e.message;
        }
        if (problem.empty()) check(shared, mine);
        if (round % 7 == 6) shared.trim();
        if (!shared.contains(mine) || shared.info(mine)->shape != Shape(8, 8)) problem = "the weight got lost";
        if (!shared.evict(mine)) problem = "it was not there to evict";
      }
      // One of them wins.
      const Error e = shared.upload_weight("contested", common, 8, 8);
      if (!e) ++taken;
      if (e && e.code != Errc::already_exists) problem = e.message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
  CHECK(taken == 1);
  CHECK(shared.names() == std::vector<std::string>{"common", "contested"});
}

}  // namespace brontes::test
