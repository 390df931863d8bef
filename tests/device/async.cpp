// Work in flight: when it is done, in which order it happens, and what may be destroyed meanwhile.
#include "fixture.hpp"
#include "reference.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

namespace brontes::test {
namespace {

using namespace std::chrono_literals;

// Some ten milliseconds of work on a CPU driver.
struct Heavy {
  static constexpr std::uint64_t size = 160;

  explicit Heavy(const Device& device) : batch(device) {
    x = batch.upload(std::vector<float>(size * size, 1.0f), {size, size});
    MatmulOptions options;
    options.alpha = 1.0f / size;
    options.kernel = MatmulKernel::naive;
    y = x;
    for (int i = 0; i < 2; ++i) y = batch.matmul(y, x, options);
  }

  Batch batch;
  Tensor x, y;
};

void wait_until_ready(const Submission& submission) {
  while (!submission.ready()) std::this_thread::sleep_for(100us);
}

DeviceOptions staged_options() {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = true;
  return options;
}

// state = state + x, in one run.
struct Accumulator {
  Accumulator(const Device& device, const Buffer& state, float step) : batch(device) {
    x = batch.upload(std::vector<float>(state.size(), step), state.shape());
    batch.store(batch.add(batch.import_buffer(state), x), state);
  }
  Batch batch;
  Tensor x;
};

}  // namespace

TEST_CASE_METHOD(DeviceTest, "work that never was is ready", "[async]") {
  const Submission nothing;
  CHECK(nothing.ready());
  REQUIRE_OK(nothing.wait());
  REQUIRE_OK(nothing.wait(0ns));
  Batch batch(shared_device());
  const Submission empty = batch.submit().value();
  CHECK(empty.ready());
  REQUIRE_OK(empty.wait(0ns));
}

TEST_CASE_METHOD(DeviceTest, "submit returns before the work is done", "[async]") {
  Heavy heavy(shared_device());
  Program program = heavy.batch.compile().value();
  REQUIRE_OK(program.run());
  int early = 0;
  for (int i = 0; i < 5; ++i) {
    const Submission submission = program.submit().value();
    const Error error = submission.wait(0ns);
    if (error) {
      CHECK(error.code == Errc::timeout);
      CHECK_FALSE(error.message.empty());
      ++early;
    }
    REQUIRE_OK(submission.wait());
    CHECK(submission.ready());
    REQUIRE_OK(submission.wait(0ns));
  }
  CHECK(early > 0);
}

TEST_CASE_METHOD(DeviceTest, "waits with a timeout end with ok or with timeout", "[async]") {
  Heavy heavy(shared_device());
  Program program = heavy.batch.compile().value();
  for (const auto timeout : {-1ns, 0ns, 1ns, 1000ns, std::chrono::nanoseconds(10s)}) {
    const Submission submission = program.submit().value();
    const Error error = submission.wait(timeout);
    INFO(timeout.count() << " ns: " << error.message);
    CHECK((error.code == Errc::ok || (error.code == Errc::timeout && timeout < 10s)));
    if (!error) CHECK(submission.ready());
    wait_until_ready(submission);
    REQUIRE_OK(submission.wait(timeout));
  }
  CHECK(program.read(heavy.y).value() == std::vector<float>(Heavy::size * Heavy::size, 1.0f));
}

TEST_CASE_METHOD(DeviceTest, "a batch that was submitted can be read, extended and executed", "[async]") {
  for (const bool staged : {false, true}) {
    const Device device = open_device(staged ? staged_options() : checked_options());
    Batch batch(device);
    std::vector<float> data = counting(5000);
    const Tensor x = batch.upload(data);
    data.assign(5000, -7.0f);
    const Tensor y = batch.keep(batch.scale(x, 2.0f));
    const Submission first = batch.submit().value();
    const Tensor z = batch.offset(y, 1.0f);
    CHECK(batch.read(z).error().code == Errc::not_executed);
    const Submission second = batch.submit().value();
    CHECK(read(batch, z)[4999] == 9999.0f);
    CHECK(second.ready());
    CHECK(first.ready());
    CHECK(read(batch, y)[4999] == 9998.0f);
    const Tensor w = batch.neg(z);
    REQUIRE_OK(batch.submit().error());
    REQUIRE_OK(batch.execute());  // nothing new
    CHECK(read(batch, w)[0] == -1.0f);
    CHECK(batch.stats().submits == 3);
  }
}

TEST_CASE_METHOD(DeviceTest, "many runs of one program are in flight and happen in order", "[async]") {
  for (const bool staged : {false, true}) {
    const Device device = open_device(staged ? staged_options() : checked_options());
    const Buffer state = Buffer::create(device, {1000}).value();
    Accumulator one(device, state, 1.0f);
    Program program = one.batch.compile().value();
    std::vector<Submission> submissions;
    for (int i = 0; i < 50; ++i) submissions.push_back(program.submit().value());
    REQUIRE_OK(submissions.back().wait());
    // One timeline: what came earlier is done.
    for (const Submission& s : submissions) CHECK(s.ready());
    CHECK(state.read().value() == std::vector<float>(1000, 50.0f));
  }
}

TEST_CASE_METHOD(DeviceTest, "programs that share a buffer follow each other in the order of submission", "[async]") {
  for (const bool staged : {false, true}) {
    const Device device = open_device(staged ? staged_options() : checked_options());
    const Buffer shared = Buffer::create(device, {777}).value();
    const Buffer result = Buffer::create(device, {777}).value();
    Batch first(device);
    const Tensor x = first.upload(counting(777));
    first.store(first.offset(first.import_buffer(shared), 1.0f), shared);
    (void)x;
    Batch second(device);
    second.store(second.scale(second.import_buffer(shared), 2.0f), shared);
    Batch third(device);
    third.store(third.add(third.import_buffer(shared), third.import_buffer(result)), result);
    Program a = first.compile().value();
    Program b = second.compile().value();
    Program c = third.compile().value();
    float want = 0;
    float sum = 0;
    for (int i = 0; i < 12; ++i) {
      REQUIRE_OK(a.submit().error());
      REQUIRE_OK(b.submit().error());
      REQUIRE_OK(c.submit().error());
      want = (want + 1) * 2;
      sum += want;
    }
    CHECK(shared.read().value() == std::vector<float>(777, want));
    CHECK(result.read().value() == std::vector<float>(777, sum));
  }
}

TEST_CASE_METHOD(DeviceTest, "a program, a batch and a buffer write meet in one buffer in order", "[async]") {
  Buffer state = Buffer::create(shared_device(), {64}).value();
  Accumulator one(shared_device(), state, 1.0f);
  Program program = one.batch.compile().value();
  for (int round = 0; round < 5; ++round) {
    REQUIRE_OK(state.write(std::vector<float>(64, 10.0f)));
    for (int i = 0; i < 3; ++i) REQUIRE_OK(program.submit().error());
    Batch batch(shared_device());
    batch.store(batch.neg(batch.import_buffer(state)), state);
    REQUIRE_OK(batch.submit().error());
    REQUIRE_OK(program.submit().error());
    CHECK(state.read().value() == std::vector<float>(64, -12.0f));
  }
}

TEST_CASE_METHOD(DeviceTest, "a run can wait for a run of another program, also of another thread", "[async]") {
  const Device& device = shared_device();
  const Buffer shared = Buffer::create(device, {Heavy::size, Heavy::size}).value();
  Heavy heavy(device);
  heavy.batch.store(heavy.y, shared);
  Program producer = heavy.batch.compile().value();
  Batch batch(device);
  const Tensor z = batch.sum(batch.import_buffer(shared));
  Program consumer = batch.compile().value();
  for (int round = 0; round < 4; ++round) {
    REQUIRE_OK(producer.write(heavy.x, std::vector<float>(Heavy::size * Heavy::size, static_cast<float>(round % 2))));
    std::promise<Submission> made;
    std::future<Submission> future = made.get_future();
    std::string problem;
    std::thread thread([&] {
      const Result<Submission> after = consumer.submit(future.get());
      if (!after)
        problem = after.error().message;
      else if (const Error e = after->wait())
        problem = e.message;
    });
    made.set_value(producer.submit().value());
    thread.join();
    CHECK(problem == "");
    CHECK(consumer.read(z).value() == std::vector<float>{static_cast<float>(round % 2) * Heavy::size * Heavy::size});
  }
  // After something that is done, and after nothing.
  REQUIRE_OK(consumer.submit(Submission()).error());
  const Submission done = consumer.submit().value();
  REQUIRE_OK(done.wait());
  REQUIRE_OK(consumer.submit(done).value().wait());
}

TEST_CASE_METHOD(DeviceTest, "a run after another is not ready before it, even with nothing to do", "[async]") {
  Heavy heavy(shared_device());
  Program slow = heavy.batch.compile().value();
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f});
  Program nothing = batch.compile().value();
  for (int i = 0; i < 5; ++i) {
    const Submission first = slow.submit().value();
    const Submission second = nothing.submit(first).value();
    const bool ready = second.ready();
    const bool first_ready = first.ready();
    CHECK((!ready || first_ready));
    REQUIRE_OK(second.wait());
    CHECK(first.ready());
  }
  CHECK(nothing.read(x).value() == std::vector<float>{1});
}

TEST_CASE_METHOD(DeviceTest, "a submission of another device cannot be waited for", "[async]") {
  const Device other = open_device();
  Batch there(other);
  (void)there.neg(there.upload({1.f}));
  const Submission foreign = there.submit().value();
  Batch here(shared_device());
  const Tensor y = here.neg(here.upload({1.f}));
  Program program = here.compile().value();
  const Error error = program.submit(foreign).error();
  CHECK(error.code == Errc::invalid_argument);
  CHECK(contains(error.message, "device"));
  CHECK(program.read(y).error().code == Errc::not_executed);
  REQUIRE_OK(foreign.wait());
  REQUIRE_OK(program.run());
  CHECK(program.read(y).value() == std::vector<float>{-1});
}

TEST_CASE_METHOD(DeviceTest, "data may be changed as soon as write and upload return", "[async]") {
  for (const bool staged : {false, true}) {
    const Device device = open_device(staged ? staged_options() : checked_options());
    const std::size_t n = 100000;
    std::vector<float> data(n, 0.0f);
    Batch batch(device);
    const Tensor x = batch.upload(data);
    const Tensor y = batch.offset(x, 0.5f);
    const Tensor total = batch.sum(x);
    Program program = batch.compile().value();
    for (int i = 0; i < 20; ++i) {
      data.assign(n, static_cast<float>(i));
      REQUIRE_OK(program.write(x, data));
      data.assign(n, -1.0f);
      REQUIRE_OK(program.submit().error());
      data.assign(n, -2.0f);
      // The next write waits for this run, so that it sees its own data.
      if (i % 3 != 0) continue;
      CHECK(program.read(y).value() == std::vector<float>(n, static_cast<float>(i) + 0.5f));
      CHECK(program.read(total).value() == std::vector<float>{static_cast<float>(i) * static_cast<float>(n)});
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "destroying a program in flight neither waits nor breaks its run", "[async]") {
  const Buffer result = Buffer::create(shared_device(), {Heavy::size, Heavy::size}).value();
  {
    Heavy warm(shared_device());
    REQUIRE_OK(warm.batch.execute());
  }
  int early = 0;
  for (int i = 0; i < 6; ++i) {
    std::optional<Heavy> heavy(std::in_place, shared_device());
    heavy->batch.store(heavy->batch.scale(heavy->y, static_cast<float>(i)), result);
    std::optional<Program> program = heavy->batch.compile().value();
    const Submission submission = program->submit().value();
    program.reset();
    heavy.reset();
    early += !submission.ready();
    REQUIRE_OK(submission.wait());
    CHECK(result.read().value() == std::vector<float>(Heavy::size * Heavy::size, static_cast<float>(i)));
  }
  CHECK(early > 0);
}

TEST_CASE_METHOD(DeviceTest, "batches, programs and buffers may go in any order with work in flight", "[async]") {
  for (const bool staged : {false, true}) {
    const Device device = open_device(staged ? staged_options() : checked_options());
    const std::uint64_t live = device.stats().live_buffers;
    Submission last;
    for (int i = 0; i < 60; ++i) {
      std::optional<Buffer> weights = Buffer::from(device, counting(2000)).value();
      std::optional<Buffer> sink = Buffer::create(device, {2000}).value();
      std::optional<Batch> batch(std::in_place, device);
      const Tensor x = batch->upload(counting(2000));
      const Tensor y = batch->mul(batch->import_buffer(*weights), x);
      const Tensor total = batch->sum(y);
      batch->store(batch->neg(y), *sink);
      std::optional<Program> program = batch->compile().value();
      for (int k = 0; k < 3; ++k) last = program->submit().value();
      if (i % 2 == 0) last = batch->submit().value();
      switch (i % 6) {
        case 0: weights.reset(), program.reset(), batch.reset(), sink.reset(); break;
        case 1: program.reset(), batch.reset(), sink.reset(), weights.reset(); break;
        case 2: batch->reset(), sink.reset(), last = program->submit().value(), program.reset(); break;
        case 3: sink.reset(), weights.reset(), batch.reset(), last = program->submit().value(); break;
        case 4: *program = batch->compile().value(), last = program->submit().value(); break;
        default: *batch = Batch(device), *weights = Buffer::create(device, {3}).value(); break;
      }
      if (program && i % 5 == 0) {
        CHECK(program->read(total).value().size() == 1);
      }
    }
    REQUIRE_OK(last.wait());
    // What was set aside goes when there is a reason to look, not later than with the device.
    (void)Buffer::create(device, {1}).value();
    CHECK(device.stats().live_buffers <= live + 1);
  }
}

TEST_CASE_METHOD(DeviceTest, "a submission outlives everything else", "[async]") {
  for (int i = 0; i < 6; ++i) {
    Submission submission;
    {
      std::optional<Device> device(open_device(i % 2 == 0 ? checked_options() : staged_options()));
      std::optional<Heavy> heavy(std::in_place, *device);
      std::optional<Program> program = heavy->batch.compile().value();
      submission = program->submit().value();
      if (i % 3 == 0) device.reset();
      heavy.reset();
      if (i % 3 == 1) device.reset();
    }
    if (i < 2) REQUIRE_OK(submission.wait());
    if (i == 2) wait_until_ready(submission);
    // Otherwise it is the last to know the device, and closes it with work in flight.
    const Submission copy = submission;
    submission = Submission();
    if (i == 3) REQUIRE_OK(copy.wait());
  }
}

TEST_CASE_METHOD(DeviceTest, "threads with programs of their own share weights and a device", "[async]") {
  const Device& device = shared_device();
  const Buffer weights = Buffer::from(device, counting(4096), {64, 64}).value();
  std::vector<std::string> problems(4);
  std::vector<std::thread> threads;
  for (std::size_t id = 0; id < problems.size(); ++id) {
    threads.emplace_back([&, id] {
      Batch batch(device);
      const Tensor x = batch.upload(std::vector<float>(64), {1, 64});
      const Tensor y = batch.offset(batch.matmul(x, batch.import_buffer(weights)), static_cast<float>(id));
      Result<Program> program = batch.compile();
      if (!program) return void(problems[id] = program.error().message);
      std::vector<float> in(64, 0.0f);
      std::vector<float> out(64);
      for (std::size_t i = 0; i < 40; ++i) {
        in.assign(64, 0.0f);
        in[i] = 1.0f;  // picks row i
        if (const Error e = program->write(x, in)) return void(problems[id] = e.message);
        if (const Error e = program->run()) return void(problems[id] = e.message);
        if (const Error e = program->read(y, out)) return void(problems[id] = e.message);
        for (std::size_t c = 0; c < 64; ++c) {
          if (out[c] != static_cast<float>(i * 64 + c + id)) problems[id] = "row " + std::to_string(i) + " is wrong";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE_METHOD(DeviceTest, "no update of a shared buffer by several threads is lost", "[async]") {
  const Device& device = shared_device();
  const Buffer state = Buffer::create(device, {500}).value();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&] {
      Accumulator one(device, state, 1.0f);
      Result<Program> program = one.batch.compile();
      if (!program) return void(++failures);
      Submission last;
      for (int i = 0; i < 25; ++i) {
        Result<Submission> next = i % 2 == 0 ? program->submit() : program->submit(last);
        if (!next) return void(++failures);
        last = *next;
      }
      // The program goes with its last runs in flight.
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(state.read().value() == std::vector<float>(500, 100.0f));
}

TEST_CASE_METHOD(DeviceTest, "one submission may be waited for by many threads", "[async]") {
  Heavy heavy(shared_device());
  Program program = heavy.batch.compile().value();
  const Submission submission = program.submit().value();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < 6; ++id) {
    threads.emplace_back([&, id] {
      const Submission mine = submission;
      if (id % 2 == 0) {
        if (mine.wait()) ++failures;
      } else {
        wait_until_ready(mine);
      }
      if (!mine.ready()) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

}  // namespace brontes::test
