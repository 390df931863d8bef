// fork() in a program that uses a device: a driver's threads do not survive in the child, so nothing there may wait for
// them, nor for a lock that a thread of the parent held.
#include "everything.hpp"
#include "sanitizers.hpp"

#include <brontes/vulkan.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brontes::test {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;

/// Runs `work` in a forked process. What it returns, or what became of the process.
template <class Work>
std::string in_child(Work work) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const std::string text = work();
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  bool hangs = false;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (!hangs && std::chrono::steady_clock::now() - start > patience) {
      hangs = true;
      kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(1ms);
  }
  std::string text;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  if (hangs) return "the child hangs; it said: " + text;
  if (WIFSIGNALED(status)) return "the child died of signal " + std::to_string(WTERMSIG(status)) + "; it said: " + text;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return "the child failed; it said: " + text;
  return text;
}

// What is wrong in the child, line by line. No assertions here: Catch2 belongs to the parent.
std::string use_all(Everything& all, unsigned order) {
  std::string wrong;
  for (const Everything::Answer& answer : all.call_all()) {
    if (answer.error.code == Errc::device_lost && contains(answer.error.message, "fork")) continue;
    wrong += std::string(answer.call) + ": " + to_string(answer.error.code) + ": " + answer.error.message + "\n";
  }
  if (all.record() != "") wrong += "recording: " + all.record() + "\n";
  if (all.pending->dump().error().code != Errc::device_lost) wrong += "Batch::dump() gave a plan\n";
  if (vulkan::lock_queue(*all.device).owns_lock()) wrong += "lock_queue() locked a queue that is not there\n";

  // These have no error to return.
  (void)all.device->stats();
  (void)all.device->info();
  (void)all.device->tuning();
  (void)all.device->pipeline_cache();
  (void)explain_matmul(*all.device, 4, 4, 4);
  (void)all.cache->stats();
  (void)all.cache->names();
  (void)all.cache->evict("w");
  all.cache->clear();
  all.cache->trim();
  all.executed->reset();

  const unsigned step = order % 2 == 0 ? 1 : Everything::parts - 1;
  for (unsigned i = 0; i < Everything::parts; ++i) all.destroy((order + i * step) % Everything::parts);
  return wrong;
}

/// Threads that use a device, and a cache of it, until they are told to stop. Whatever lock the library has, one of
/// them is likely to hold it at any moment.
class Busy {
 public:
  Busy(const Device& device, MatmulCache& cache) {
    start([&device] {
      Batch batch(device);
      const Tensor x = batch.upload(counting(256));
      const Tensor y = batch.neg(x);
      Result<Program> program = batch.compile();
      if (!program) return program.error().message;
      for (int i = 0; i < 20; ++i) {
        if (const Error e = program->run()) return e.message;
      }
      const Result<std::vector<float>> got = program->read(y);
      return !got ? got.error().message : (*got)[255] == -255.0f ? "" : std::string("neg is wrong");
    });
    start([&device] {
      // Making and destroying them is what is to be met.
      for (int i = 0; i < 2000; ++i) {
        const Batch batch(device);
        const MatmulCache other(device);
      }
      return std::string();
    });
    start([&cache] {
      std::vector<float> y(4);
      if (const Error e = cache.upload_weight("busy", counting(4 * 32), 4, 32)) return e.message;
      if (const Error e = cache.matmul("busy", std::vector<float>(32, 1.0f), y, 1)) return e.message;
      if (!cache.evict("busy")) return std::string("the weight is gone");
      return y[0] == 496.0f ? "" : std::string("the product is wrong");
    });
  }
  ~Busy() { stop(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  /// What went wrong.
  std::string stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return problem_;
  }

 private:
  template <class Work>
  void start(Work work) {
    threads_.emplace_back([this, work] {
      while (!stop_) {
        const std::string text = work();
        if (text.empty()) continue;
        const std::lock_guard lock(mutex_);
        problem_ = text;
        return;
      }
    });
  }
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::string problem_;
  std::vector<std::thread> threads_;
};

void check_works(Everything& all) {
  CHECK(all.buffer->read().value() == counting(64));
  REQUIRE_OK(all.program->run());
  std::vector<float> y(4);
  REQUIRE_OK(all.cache->matmul("w", std::vector<float>(32, 1.0f), y, 1));
  CHECK(y[0] == 496.0f);
  check_device_works(*all.device);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "in a forked process every call says so, everything can go, and the parent goes on",
                 "[fork]") {
  for (const bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    Everything all(options);
    for (unsigned order = 0; order < Everything::parts; ++order) {
      const Submission flying = all.program->submit().value();
      INFO((staged ? "staged" : "mapped") << " memory, part " << order << " goes first");
      CHECK(in_child([&] { return use_all(all, order); }) == "");
      REQUIRE_OK(flying.wait());
      check_works(all);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a process may fork while other threads submit work", "[fork][threads]") {
  if (thread_sanitizer) SKIP("the thread sanitizer does not follow a fork of several threads");
  if (address_sanitizer) SKIP("the address sanitizer's own locks may be held by another thread when the process forks");
  Everything all(checked_options());
  Busy busy(*all.device, *all.cache);
  const unsigned rounds = soak() ? 2000 : 40;
  for (unsigned round = 0; round < rounds; ++round) {
    INFO("round " << round);
    // At no particular moment.
    std::this_thread::sleep_for(std::chrono::microseconds(round * 577 % 5000));
    REQUIRE(in_child([&] { return use_all(all, round % Everything::parts); }) == "");
  }
  CHECK(busy.stop() == "");
  check_works(all);
}

TEST_CASE_METHOD(DeviceTest, "a child of a child is a forked process too", "[fork]") {
  Everything all(checked_options());
  CHECK(in_child([&] { return in_child([&] { return use_all(all, 3); }); }) == "");
  check_works(all);
}

}  // namespace brontes::test
