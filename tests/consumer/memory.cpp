// A program without exceptions that runs out of host memory, and is told so by Errors.
#include <brontes/brontes.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#if defined(__cpp_exceptions)
#  error "this is about programs that have none"
#endif

namespace {

constexpr std::size_t big_count = std::size_t{30} << 20;  // floats: 120 MiB, which every device can bind
constexpr rlim_t room = rlim_t{32} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

int failures = 0;

void expect(brontes::Errc got, brontes::Errc want, const char* what) {
  if (got == want) return;
  std::fprintf(stderr, "%s: %s instead of %s\n", what, to_string(got), to_string(want));
  ++failures;
}

void expect_out_of_memory(const brontes::Error& error, const char* what) {
  std::printf("%s: %s\n", what, error.message.c_str());
  expect(error.code, brontes::Errc::out_of_memory, what);
}

/// The process may have this much more than it has now.
bool limit_memory(rlim_t more) {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return false;
  unsigned long pages = 0;
  const int found = std::fscanf(file, "%lu", &pages);
  std::fclose(file);
  rlimit limit{};
  if (found != 1 || getrlimit(RLIMIT_AS, &limit) != 0) return false;
  limit.rlim_cur = rlim_t{pages} * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more;
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

}  // namespace

int main() {
  brontes::DeviceOptions options;
  options.validation = brontes::Toggle::off;  // the layer does not survive a lack of memory
  options.pipeline_cache.enabled = false;
  auto device = brontes::Device::open(options);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }

  // Pages that nobody writes to are not there.
  const std::unique_ptr<float, Free> big(static_cast<float*>(std::calloc(big_count, sizeof(float))));
  const brontes::Span<const float> data(big.get(), big_count);
  const auto buffer = brontes::Buffer::from(*device, data);
  brontes::Batch batch(*device);
  const auto x = batch.upload({1.f, 2.f, -3.f, 4.f});
  const auto y = batch.scale(batch.relu(x), 2.f);
  auto program = batch.compile();
  if (!big || !buffer || !program || program->run() || !limit_memory(room)) {
    std::fprintf(stderr, "could not begin\n");
    return 1;
  }

  brontes::Batch large(*device);
  expect(large.upload(data).valid() ? brontes::Errc::ok : large.error().code, brontes::Errc::out_of_memory, "upload");
  expect_out_of_memory(large.error(), "Batch::upload");
  expect_out_of_memory(large.execute(), "Batch::execute");
  // The first ones may fit into memory that the library has already.
  std::optional<brontes::Buffer> held[16];
  brontes::Error full;
  for (auto& slot : held) {
    auto made = brontes::Buffer::create(*device, {big_count});
    full = made.error();
    if (full) break;
    slot.emplace(std::move(*made));
  }
  expect_out_of_memory(full, "Buffer::create, many");
  expect_out_of_memory(brontes::Buffer::from(*device, data).error(), "Buffer::from");
  expect_out_of_memory(brontes::Buffer::create(*device, {big_count}).error(), "Buffer::create");
  expect_out_of_memory(buffer->read().error(), "Buffer::read");
  expect_out_of_memory(brontes::Weight::from(*device, data, big_count / 32, 32, brontes::DType::f16).error(),
                       "Weight::from");
  expect_out_of_memory(brontes::Weight::from_transposed(*device, data, big_count / 32, 32).error(),
                       "Weight::from_transposed");
  brontes::MatmulCache cache(*device);
  expect_out_of_memory(cache.upload_weight("w", data, big_count / 32, 32), "MatmulCache::upload_weight");
  expect_out_of_memory(brontes::ops::relu(*device, data, {big.get(), big_count}), "ops::relu");

  for (auto& slot : held) slot.reset();

  // Little by little.
  large.reset();
  brontes::Tensor z = large.upload({1.f});
  std::size_t recorded = 0;
  while (!large.error() && recorded < 100'000'000) {
    z = large.offset(z, 1.f);
    ++recorded;
  }
  expect(large.error().code, brontes::Errc::out_of_memory, "recording");
  expect(large.execute().code, brontes::Errc::out_of_memory, "execute after recording");
  expect(large.read(z).error().code, brontes::Errc::invalid_tensor, "read of what was not recorded");
  large = brontes::Batch(*device);
  std::printf("%zu ops were recorded\n", recorded);

  // What fits goes on.
  const float next[] = {-1.f, 1.f, 2.f, 3.f};
  float result[4] = {};
  expect(program->write(x, next).code, brontes::Errc::ok, "write");
  expect(program->run().code, brontes::Errc::ok, "run");
  expect(program->read(y, result).code, brontes::Errc::ok, "read");
  const bool right = result[0] == 0.f && result[1] == 2.f && result[2] == 4.f && result[3] == 6.f;
  if (!right) std::fprintf(stderr, "the result is wrong\n");
  return failures == 0 && right ? 0 : 1;
}
