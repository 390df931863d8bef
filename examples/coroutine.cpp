// Coroutines that await device work on a small thread pool. No thread of the pool ever blocks: a coroutine whose
// run is in flight is parked with a reactor, one thread that watches the timeline, and goes on in the pool when the
// run is done. Eight streams share two threads.
#include <brontes/brontes.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <deque>
#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Resumes coroutines, any thread any coroutine.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this](std::stop_token stop) { work(stop); });
  }

  void post(std::coroutine_handle<> coroutine) {
    std::lock_guard lock(mutex_);
    ready_.push_back(coroutine);
    wake_.notify_one();
  }

 private:
  void work(std::stop_token stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return !ready_.empty(); })) return;
      const std::coroutine_handle<> next = ready_.front();
      ready_.pop_front();
      lock.unlock();
      next.resume();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<std::jthread> threads_;
};

// snippet: reactor
// Watches submissions and hands coroutines back to the pool when theirs is done.
class Reactor {
 public:
  explicit Reactor(Pool& pool) : pool_(pool), thread_([this](std::stop_token stop) { watch(stop); }) {}

  // co_await reactor.done(submission) gives the Error of the wait.
  auto done(brontes::Submission submission) {
    struct Awaiter {
      Reactor& reactor;
      brontes::Submission submission;
      bool await_ready() const noexcept { return submission.ready(); }
      void await_suspend(std::coroutine_handle<> coroutine) { reactor.park(submission, coroutine); }
      brontes::Error await_resume() const { return submission.wait(0ns); }
    };
    return Awaiter{*this, std::move(submission)};
  }

 private:
  struct Parked {
    brontes::Submission submission;
    std::coroutine_handle<> coroutine;
  };

  void park(brontes::Submission submission, std::coroutine_handle<> coroutine) {
    std::lock_guard lock(mutex_);
    arrivals_.push_back({std::move(submission), coroutine});
    wake_.notify_one();
  }

  void watch(std::stop_token stop) {
    std::vector<Parked> parked;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (parked.empty() && !wake_.wait(lock, stop, [this] { return !arrivals_.empty(); })) return;
        parked.insert(parked.end(), arrivals_.begin(), arrivals_.end());
        arrivals_.clear();
      }
      // Sleeps on one of them, briefly: another may be done, or arrive, first. A lost device never gets ready.
      const brontes::Error error = parked.front().submission.wait(200us);
      const bool lost = error && error.code != brontes::Errc::timeout;
      std::erase_if(parked, [&](const Parked& p) {
        if (!lost && !p.submission.ready()) return false;
        pool_.post(p.coroutine);
        return true;
      });
    }
  }

  Pool& pool_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Parked> arrivals_;
  std::jthread thread_;
};
// end

// A coroutine that nobody waits for; it says itself when it is done.
struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<> coroutine;
};

struct Outcome {
  int runs = 0;
  bool right = true;
};

// snippet: stream
// y = 2 x + 1, frame after frame. The program moves between threads with the coroutine, one at a time.
Task stream(const brontes::Device& device, Reactor& reactor, int id, Outcome& outcome, std::latch& finished) {
  brontes::Batch batch(device);
  const auto x = batch.upload(std::vector<float>(4096));
  const auto y = batch.offset(batch.scale(x, 2.f), 1.f);
  auto program = batch.compile();
  outcome.right = program.has_value();

  std::vector<float> data(4096);
  for (int frame = 0; outcome.right && frame < 20; ++frame) {
    data.assign(data.size(), static_cast<float>(100 * id + frame));
    if (program->write(x, data)) outcome.right = false;
    const auto submission = program->submit();
    if (!submission || co_await reactor.done(*submission)) outcome.right = false;  // the thread does other things
    if (program->read(y, data) || data[17] != static_cast<float>(2 * (100 * id + frame) + 1)) outcome.right = false;
    ++outcome.runs;
  }
  finished.count_down();
}
// end

}  // namespace

int main() {
  const auto device = brontes::Device::open();
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  constexpr int streams = 8;
  std::vector<Outcome> outcomes(streams);
  {
    std::latch finished(streams);
    Pool pool(2);
    Reactor reactor(pool);
    for (int id = 0; id < streams; ++id) {
      pool.post(stream(*device, reactor, id, outcomes[static_cast<std::size_t>(id)], finished).coroutine);
    }
    finished.wait();
  }
  int runs = 0;
  for (const Outcome& outcome : outcomes) {
    runs += outcome.runs;
    if (!outcome.right) return 1;
  }
  std::printf("%d coroutines, %d runs, 2 threads\n", streams, runs);
  return runs == streams * 20 ? 0 : 1;
}
