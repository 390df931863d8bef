// Programs: compiled once, run any number of times.
#include "allocations.hpp"
#include "fixture.hpp"
#include "reference.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>

namespace brontes::test {
namespace {

DeviceOptions staged_options() {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = true;
  return options;
}

// Calls `test` with a device whose memory is mapped where the driver allows, and with one that stages.
template <class Test>
void for_both_memories(Test test) {
  test(shared_device());
  const Device staged = open_device(staged_options());
  test(staged);
}

// x -> layer -> y with everything a plan has: fusion, two levels, reductions.
struct Model {
  explicit Model(const Device& device, const BatchOptions& options = {})
      : weights(Buffer::from(device, cases::random_values(24 * 16, -1, 1, 1), {24, 16}).value()),
        bias(Buffer::from(device, cases::random_values(24, -1, 1, 2)).value()),
        batch(device, options) {
    x = batch.upload(cases::random_values(8 * 16, -1, 1, 3), {8, 16});
    w = batch.import_buffer(weights);
    b = batch.import_buffer(bias);
    h = batch.gelu(batch.linear(x, w, b));
    y = batch.scale(batch.tanh(batch.keep(batch.offset(h, 0.25f))), 2.0f);
    total = batch.relu(batch.sum(h));
  }
  Buffer weights, bias;
  Batch batch;
  Tensor x, w, b, h, y, total;
};

std::vector<float> read(const Program& program, Tensor x) {
  auto got = program.read(x);
  REQUIRE_OK(got.error());
  return *got;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a program gives what execute gives", "[program]") {
  for_both_memories([](const Device& device) {
    Model model(device);
    Program program = model.batch.compile().value();
    REQUIRE_OK(program.run());
    REQUIRE_OK(model.batch.execute());
    for (Tensor t : {model.y, model.total}) CHECK(cases::mismatch(read(program, t), test::read(model.batch, t)) == "");
  });
}

TEST_CASE_METHOD(DeviceTest, "a thousand runs give the same bits and allocate nothing", "[program]") {
  for_both_memories([](const Device& device) {
    Model model(device);
    Program program = model.batch.compile().value();
    const std::vector<float> inputs[] = {cases::random_values(8 * 16, -2, 2, 10),
                                         cases::random_values(8 * 16, -2, 2, 11)};
    std::vector<float> want[2];
    std::vector<float> totals[2];
    for (std::size_t i = 0; i < 2; ++i) {
      REQUIRE_OK(program.write(model.x, inputs[i]));
      REQUIRE_OK(program.run());
      want[i] = read(program, model.y);
      totals[i] = read(program, model.total);
    }
    CHECK(want[0] != want[1]);

    std::vector<float> y(want[0].size());
    std::vector<float> total(1);
    std::size_t errors = 0;
    std::size_t differences = 0;
    const DeviceStats before = device.stats();
    const HostAllocations host = allocations_of([&] {
      for (std::size_t i = 0; i < 1000; ++i) {
        errors += static_cast<bool>(program.write(model.x, inputs[i % 2]));
        const Result<Submission> submission = program.submit();
        errors += !submission || submission->wait();
        errors += static_cast<bool>(program.read(model.y, y));
        errors += static_cast<bool>(program.read(model.total, total));
        differences += std::memcmp(y.data(), want[i % 2].data(), y.size() * sizeof(float)) != 0;
        differences += std::memcmp(total.data(), totals[i % 2].data(), sizeof(float)) != 0;
      }
    });
    const DeviceStats after = device.stats();
    CHECK(errors == 0);
    CHECK(differences == 0);
    CHECK(host.ours == 0);
    CHECK(after.allocations == before.allocations);
    CHECK(after.live_buffers == before.live_buffers);
    CHECK(after.pipelines_created == before.pipelines_created);
    CHECK(after.pipelines_requested == before.pipelines_requested);
    CHECK(after.submits == before.submits + 1000);
  });
}

TEST_CASE_METHOD(DeviceTest, "the allocation counter sees what it should", "[program]") {
  if (!allocations_are_counted()) SKIP("a sanitizer has its own operator new, or this is no glibc");
  Model model(shared_device());
  Program program = model.batch.compile().value();
  REQUIRE_OK(program.run());
  CHECK(allocations_of([] {}).all == 0);
  // In the library, in libstdc++ on behalf of the library, and in an instantiation of a template.
  CHECK(allocations_of([&] { (void)program.read(model.y); }).ours > 0);
  CHECK(allocations_of([&] { (void)program.write(Tensor(), std::vector<float>()); }).ours > 0);
  CHECK(allocations_of([&] { (void)program.dump(); }).ours > 0);
  CHECK(allocations_of([&] { (void)model.batch.relu(model.x); }).ours > 0);
  CHECK(allocations_of([&] { (void)to_string(Shape(100000, 200000, 300000)); }).ours > 0);
}

TEST_CASE_METHOD(DeviceTest, "stats of a program add up run by run", "[program]") {
  for_both_memories([](const Device& device) {
    Model model(device);
    Program program = model.batch.compile().value();
    const BatchStats none = program.stats();
    CHECK(none.operations == 8);
    CHECK(none.values == model.batch.num_buffers());
    CHECK(none.dispatches == 0);
    CHECK(none.submits == 0);
    CHECK(none.transfers_down == 0);
    REQUIRE_OK(program.run());
    const BatchStats one = program.stats();
    CHECK(one.submits == 1);
    CHECK(one.dispatches > 0);
    CHECK(one.transfers_up == 1);
    CHECK(one.transfers_down == 1);
    CHECK(one.bytes_up == 8 * 16 * sizeof(float));
    CHECK(one.copy_commands == (device.info().mapped_memory ? 0 : 2));

    // Without a write nothing goes up again; with one, or several, one transfer does.
    REQUIRE_OK(program.run());
    CHECK(program.stats().transfers_up == 1);
    for (std::uint64_t i = 0; i < 3; ++i) {
      REQUIRE_OK(program.write(model.x, cases::random_values(8 * 16, 0, 1, i)));
      if (i == 1) REQUIRE_OK(program.write(model.x, cases::random_values(8 * 16, 0, 1, i)));
      REQUIRE_OK(program.run());
    }
    const BatchStats five = program.stats();
    CHECK(five.transfers_up == 4);
    CHECK(five.submits == 5);
    CHECK(five.dispatches == 5 * one.dispatches);
    CHECK(five.barriers == 5 * one.barriers);
    CHECK(five.boundary_barriers == 5 * one.boundary_barriers);
    CHECK(five.transfers_down == 5);
    CHECK(five.bytes_down == 5 * one.bytes_down);
    CHECK(five.allocations == one.allocations);
    CHECK(five.pipelines_created == one.pipelines_created);
    CHECK(five.arena_bytes == one.arena_bytes);
    CHECK(five.fused_operations == one.fused_operations);
  });
}

TEST_CASE_METHOD(DeviceTest, "write() replaces the data of an upload, also of one that is read back", "[program]") {
  for_both_memories([](const Device& device) {
    Batch batch(device);
    const Tensor x = batch.upload(counting(100));
    const Tensor y = batch.keep(batch.upload(counting(100)));
    const Tensor unused = batch.upload({1.f, 2.f});
    const Tensor sum = batch.add(x, y);
    Program program = batch.compile().value();
    REQUIRE_OK(program.run());
    CHECK(read(program, sum)[99] == 198.0f);
    REQUIRE_OK(program.write(x, std::vector<float>(100, 1.0f)));
    std::vector<float> data(100, 5.0f);
    REQUIRE_OK(program.write(y, data));
    REQUIRE_OK(program.write(unused, std::vector<float>{7.f, 8.f}));
    data.assign(100, -1.0f);  // the call has returned
    REQUIRE_OK(program.run());
    CHECK(read(program, sum) == std::vector<float>(100, 6.0f));
    CHECK(read(program, y) == std::vector<float>(100, 5.0f));
    CHECK(read(program, unused) == std::vector<float>{7, 8});
    // What is not written again stays.
    REQUIRE_OK(program.write(x, std::vector<float>(100, 2.0f)));
    REQUIRE_OK(program.run());
    CHECK(read(program, sum) == std::vector<float>(100, 7.0f));
  });
}

TEST_CASE_METHOD(DeviceTest, "wrong writes say what is wrong and change nothing", "[program]") {
  Model model(shared_device());
  Batch other(shared_device());
  const Tensor foreign = other.upload(counting(128));
  Program program = model.batch.compile().value();
  const std::vector<float> good(128, 0.5f);
  CHECK(program.write(Tensor(), good).code == Errc::invalid_tensor);
  CHECK(program.write(foreign, good).code == Errc::foreign_tensor);
  CHECK(program.write(model.x, std::vector<float>(127)).code == Errc::shape_mismatch);
  CHECK(program.write(model.x, std::vector<float>()).code == Errc::shape_mismatch);
  CHECK(program.write(model.x, Span<const float>(nullptr, 128)).code == Errc::null_data);
  CHECK(program.write(model.w, std::vector<float>(24 * 16)).code == Errc::invalid_argument);
  CHECK(program.write(model.y, std::vector<float>(8 * 24)).code == Errc::invalid_argument);
  const Tensor young = model.batch.upload(good, {8, 16});
  const Error error = program.write(young, good);
  CHECK((error.code == Errc::invalid_tensor || error.code == Errc::invalid_argument));
  model.batch.reset();
  const Tensor stale = model.batch.upload(good, {8, 16});
  CHECK(program.write(stale, good).code == Errc::stale_tensor);
  CHECK(program.stats().transfers_up == 0);
  REQUIRE_OK(program.run());
}

TEST_CASE_METHOD(DeviceTest, "wrong reads say what is wrong", "[program]") {
  Model model(shared_device());
  Program program = model.batch.compile().value();
  std::vector<float> out(8 * 24);
  CHECK(program.read(model.y).error().code == Errc::not_executed);
  CHECK(program.read(model.y, out).code == Errc::not_executed);
  CHECK(program.read(model.h).error().code == Errc::not_executed);
  CHECK(cases::mismatch(read(program, model.b), model.bias.read().value()) == "");  // an import is there already
  REQUIRE_OK(program.run());
  REQUIRE_OK(program.read(model.y, out));
  CHECK(program.read(model.h).error().code == Errc::not_kept);
  CHECK(program.read(model.x).error().code == Errc::not_kept);
  CHECK(program.read(Tensor()).error().code == Errc::invalid_tensor);
  std::vector<float> small(3);
  CHECK(program.read(model.y, small).code == Errc::shape_mismatch);
  CHECK(program.read(model.y, Span<float>(nullptr, out.size())).code == Errc::null_data);
  Batch other(shared_device());
  CHECK(program.read(other.upload(counting(4))).error().code == Errc::foreign_tensor);
  CHECK(program.read(model.batch.neg(model.x)).error().code == Errc::invalid_tensor);
}

TEST_CASE_METHOD(DeviceTest, "a batch with an error does not compile", "[program]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(3));
  (void)batch.add(x, batch.upload(counting(4)));
  CHECK(batch.compile().error().code == Errc::shape_mismatch);
  CHECK(batch.clear_error().code == Errc::shape_mismatch);
  const Tensor y = batch.neg(x);
  Program program = batch.compile().value();
  REQUIRE_OK(program.run());
  CHECK(read(program, y) == std::vector<float>{0, -1, -2});
}

TEST_CASE_METHOD(DeviceTest, "programs with little or nothing to do run", "[program]") {
  for_both_memories([](const Device& device) {
    Batch batch(device);
    {
      Program program = batch.compile().value();
      REQUIRE_OK(program.run());
      CHECK(program.submit().value().ready());
    }
    const Tensor x = batch.upload({1.f, 2.f});
    const Tensor none = batch.upload({}, {0});
    const Tensor empty = batch.neg(none);
    {
      Program program = batch.compile().value();
      REQUIRE_OK(program.run());
      CHECK(read(program, x) == std::vector<float>{1, 2});
      REQUIRE_OK(program.write(x, std::vector<float>{3.f, 4.f}));
      REQUIRE_OK(program.write(none, Span<const float>()));
      REQUIRE_OK(program.run());
      CHECK(read(program, x) == std::vector<float>{3, 4});
      CHECK(read(program, empty).empty());
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "an import can be rebound to buffers of the same shape", "[program]") {
  for_both_memories([](const Device& device) {
    const Buffer one = Buffer::from(device, counting(64)).value();
    const Buffer sink = Buffer::create(device, {64}).value();
    std::optional<Buffer> two = Buffer::from(device, std::vector<float>(64, 10.0f)).value();
    Batch batch(device);
    const Tensor b = batch.import_buffer(one);
    const Tensor again = batch.import_buffer(one);
    const Tensor y = batch.add(batch.scale(b, 2.0f), again);
    batch.store(batch.neg(b), sink);
    Program program = batch.compile().value();
    REQUIRE_OK(program.run());
    CHECK(read(program, y)[63] == 189.0f);
    const std::uint64_t pipelines = device.stats().pipelines_created;
    REQUIRE_OK(program.submit().error());  // still in flight, maybe
    REQUIRE_OK(program.rebind(b, *two));
    two.reset();  // the program has it
    REQUIRE_OK(program.run());
    CHECK(read(program, y) == std::vector<float>(64, 30.0f));
    CHECK(read(program, b) == std::vector<float>(64, 10.0f));
    CHECK(sink.read().value() == std::vector<float>(64, -10.0f));
    CHECK(device.stats().pipelines_created == pipelines);
    REQUIRE_OK(program.rebind(again, one));
    REQUIRE_OK(program.run());
    CHECK(read(program, y)[63] == 189.0f);
    CHECK(one.read().value() == counting(64));
  });
}

TEST_CASE_METHOD(DeviceTest, "a stored-to import is rebound with its stores", "[program]") {
  for (const bool fuse : {true, false}) {
    const Buffer one = Buffer::from(shared_device(), counting(32)).value();
    const Buffer two = Buffer::from(shared_device(), std::vector<float>(32, 5.0f)).value();
    BatchOptions options;
    options.fuse = fuse;
    Batch batch(shared_device(), options);
    const Tensor b = batch.import_buffer(one);
    batch.store(batch.offset(b, 1.0f), one);
    Program program = batch.compile().value();
    REQUIRE_OK(program.run());
    REQUIRE_OK(program.rebind(b, two));
    for (int i = 0; i < 10; ++i) REQUIRE_OK(program.submit().error());
    CHECK(two.read().value() == std::vector<float>(32, 15.0f));
    CHECK(one.read().value()[31] == 32.0f);
  }
}

TEST_CASE_METHOD(DeviceTest, "wrong rebinds say what is wrong and change nothing", "[program]") {
  const Buffer source = Buffer::from(shared_device(), counting(16)).value();
  const Buffer more = Buffer::from(shared_device(), counting(16)).value();
  const Buffer target = Buffer::create(shared_device(), {16}).value();
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(16));
  const Tensor a = batch.import_buffer(source);
  const Tensor t = batch.import_buffer(target);
  const Tensor c = batch.import_buffer(more);
  const Tensor y = batch.keep(batch.add(batch.add(x, a), batch.add(t, c)));
  batch.store(y, target);
  Program program = batch.compile().value();
  const Buffer fresh = Buffer::from(shared_device(), counting(16)).value();

  CHECK(program.rebind(a, Buffer::create(shared_device(), {15}).value()).code == Errc::shape_mismatch);
  CHECK(program.rebind(a, Buffer::create(shared_device(), {4, 4}).value()).code == Errc::shape_mismatch);
  CHECK(program.rebind(x, fresh).code == Errc::invalid_argument);
  CHECK(program.rebind(y, fresh).code == Errc::invalid_argument);
  CHECK(program.rebind(Tensor(), fresh).code == Errc::invalid_tensor);
  CHECK(program.rebind(a, target).code == Errc::invalid_argument);  // stored to
  CHECK(program.rebind(t, source).code == Errc::invalid_argument);
  {
    const Device elsewhere = open_device();
    const Buffer foreign = Buffer::from(elsewhere, counting(16)).value();
    CHECK(program.rebind(a, foreign).code == Errc::invalid_argument);
  }
  Buffer moved = Buffer::create(shared_device(), {16}).value();
  const Buffer owner = std::move(moved);
  CHECK(program.rebind(a, moved).code == Errc::invalid_argument);  // NOLINT: on purpose
  Batch other(shared_device());
  CHECK(program.rebind(other.import_buffer(fresh), fresh).code == Errc::foreign_tensor);

  REQUIRE_OK(program.rebind(a, source));  // itself
  REQUIRE_OK(program.rebind(a, more));    // two imports of one buffer that nobody stores to
  REQUIRE_OK(program.run());
  CHECK(read(program, y)[15] == 45.0f);
  CHECK(target.read().value()[15] == 45.0f);
}

TEST_CASE_METHOD(DeviceTest, "a rebind of a tensor younger than the program is an error", "[program]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(16)).value();
  Batch batch(shared_device());
  const Tensor y = batch.neg(batch.import_buffer(buffer));
  Program program = batch.compile().value();
  Tensor young;
  for (int i = 0; i < 100; ++i) young = batch.import_buffer(buffer);
  CHECK(program.rebind(young, buffer).code == Errc::invalid_tensor);
  REQUIRE_OK(program.run());
  CHECK(read(program, y)[15] == -15.0f);
}

TEST_CASE_METHOD(DeviceTest, "a program outlives its batch, its buffers and its device", "[program]") {
  for (const bool staged : {false, true}) {
    std::optional<Program> program;
    Tensor x, y;
    {
      const Device device = open_device(staged ? staged_options() : checked_options());
      const Buffer b = Buffer::from(device, counting(20)).value();
      Batch batch(device);
      x = batch.upload(counting(20));
      y = batch.add(batch.relu(x), batch.import_buffer(b));
      program.emplace(batch.compile().value());
    }
    REQUIRE_OK(program->run());
    CHECK(read(*program, y)[19] == 38.0f);
    REQUIRE_OK(program->write(x, std::vector<float>(20, 1.0f)));
    REQUIRE_OK(program->run());
    CHECK(read(*program, y)[19] == 20.0f);
    Program moved = std::move(*program);
    program.reset();
    REQUIRE_OK(moved.run());
    CHECK(read(moved, y)[19] == 20.0f);
  }
}

TEST_CASE_METHOD(DeviceTest, "a reset batch leaves its programs alone", "[program]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(20));
  const Tensor y = batch.neg(x);
  Program program = batch.compile().value();
  batch.reset();
  const Tensor z = batch.offset(batch.upload({1.f}), 1.0f);
  Program second = batch.compile().value();
  REQUIRE_OK(program.run());
  REQUIRE_OK(second.run());
  CHECK(read(program, y)[19] == -19.0f);
  CHECK(read(second, z) == std::vector<float>{2});
  CHECK(program.read(z).error().code == Errc::stale_tensor);
  CHECK(second.read(y).error().code == Errc::stale_tensor);
  CHECK(batch.read(y).error().code == Errc::stale_tensor);
}

TEST_CASE_METHOD(DeviceTest, "a program takes results of earlier executions as inputs", "[program]") {
  for_both_memories([](const Device& device) {
    Batch batch(device);
    const Tensor x = batch.upload(counting(50));
    const Tensor gone = batch.offset(x, 1.0f);
    const Tensor h = batch.keep(batch.scale(gone, 2.0f));
    (void)batch.neg(h);
    REQUIRE_OK(batch.execute());
    const Tensor fresh = batch.upload(std::vector<float>(50, 1.0f));
    const Tensor y = batch.add(batch.add(h, x), fresh);
    Program program = batch.compile().value();
    CHECK(program.stats().operations == 2);
    for (int i = 0; i < 3; ++i) {
      REQUIRE_OK(program.write(fresh, std::vector<float>(50, static_cast<float>(i))));
      REQUIRE_OK(program.run());
      CHECK(read(program, y)[49] == static_cast<float>(100 + 49 + i));
    }
    CHECK(read(program, h)[49] == 100.0f);
    CHECK(program.read(gone).error().code == Errc::not_kept);
    CHECK(program.write(x, counting(50)).code == Errc::invalid_argument);  // not an upload of this program
    CHECK(program.rebind(h, Buffer::create(device, {50}).value()).code == Errc::invalid_argument);
    // The batch goes on by itself.
    REQUIRE_OK(batch.execute());
    CHECK(test::read(batch, y)[49] == 150.0f);
    REQUIRE_OK(program.run());
    CHECK(read(program, y)[49] == 151.0f);
    // Nothing is left to do.
    Program nothing = batch.compile().value();
    REQUIRE_OK(nothing.run());
    CHECK(read(nothing, y)[49] == 150.0f);
  });
}

TEST_CASE_METHOD(DeviceTest, "one batch gives any number of independent programs", "[program]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(10));
  const Tensor y = batch.scale(x, 3.0f);
  Program one = batch.compile().value();
  Program two = batch.compile().value();
  const Tensor z = batch.offset(y, 1.0f);
  Program three = batch.compile().value();
  REQUIRE_OK(one.write(x, std::vector<float>(10, 1.0f)));
  REQUIRE_OK(one.run());
  REQUIRE_OK(two.run());
  REQUIRE_OK(three.run());
  CHECK(read(one, y)[9] == 3.0f);
  CHECK(read(two, y)[9] == 27.0f);
  CHECK(read(three, z)[9] == 28.0f);
  CHECK(three.read(y).error().code == Errc::not_kept);
  CHECK(one.read(z).error().code == Errc::invalid_tensor);
}

TEST_CASE_METHOD(DeviceTest, "state in a buffer goes from run to run", "[program]") {
  for_both_memories([](const Device& device) {
    for (const bool fuse : {true, false}) {
      const Buffer state = Buffer::create(device, {5}).value();
      BatchOptions options;
      options.fuse = fuse;
      Batch batch(device, options);
      const Tensor x = batch.upload({1.f, 2.f, 3.f, 4.f, 5.f});
      batch.store(batch.add(batch.import_buffer(state), x), state);
      Program program = batch.compile().value();
      for (int i = 0; i < 100; ++i) REQUIRE_OK(program.submit().error());
      CHECK(state.read().value() == std::vector<float>{100, 200, 300, 400, 500});
      Buffer writable = Buffer::create(device, {5}).value();
      REQUIRE_OK(writable.write(std::vector<float>(5, 1.0f)));
      REQUIRE_OK(program.run());
      CHECK(state.read().value()[4] == 505.0f);
    }
  });
}

namespace {

// True when braces, brackets and quotes of a text pair up.
bool balanced(const std::string& text) {
  std::string open;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      open.push_back(c);
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return false;
      open.pop_back();
    }
  }
  return open.empty() && !quoted;
}

// One JSON value, strictly; returns where it ends, or npos.
std::size_t json_end(const std::string& text, std::size_t at) {
  constexpr std::size_t bad = std::string::npos;
  auto skip = [&](std::size_t i) {
    while (i < text.size() && std::strchr(" \t\r\n", text[i]) != nullptr) ++i;
    return i;
  };
  at = skip(at);
  if (at >= text.size()) return bad;
  if (text[at] == '"') {
    for (std::size_t i = at + 1; i < text.size(); ++i) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        return i + 1;
      else if (static_cast<unsigned char>(text[i]) < 0x20)
        return bad;
    }
    return bad;
  }
  if (text[at] == '{' || text[at] == '[') {
    const bool object = text[at] == '{';
    std::size_t i = skip(at + 1);
    if (i < text.size() && text[i] == (object ? '}' : ']')) return i + 1;
    for (;;) {
      if (object) {
        i = skip(i);
        if (i >= text.size() || text[i] != '"' || (i = json_end(text, i)) == bad) return bad;
        i = skip(i);
        if (i >= text.size() || text[i] != ':') return bad;
        ++i;
      }
      if ((i = json_end(text, i)) == bad) return bad;
      i = skip(i);
      if (i >= text.size()) return bad;
      if (text[i] == (object ? '}' : ']')) return i + 1;
      if (text[i] != ',') return bad;
      ++i;
    }
  }
  for (const char* word : {"true", "false", "null"}) {
    if (text.compare(at, std::strlen(word), word) == 0) return at + std::strlen(word);
  }
  char* end = nullptr;
  static_cast<void>(std::strtod(text.c_str() + at, &end));
  return end == text.c_str() + at ? bad : static_cast<std::size_t>(end - text.c_str());
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a program's dumps are well-formed and say what runs", "[program]") {
  BatchOptions options;
  options.work_per_submit = 1;
  for (const bool split : {false, true}) {
    Model model(shared_device(), split ? options : BatchOptions());
    const Buffer sink = Buffer::create(shared_device(), {8, 24}).value();
    model.batch.store(model.batch.neg(model.h), sink);
    Program program = model.batch.compile().value();

    const std::string text = program.dump();
    CHECK(text == model.batch.dump().value());
    CHECK(contains(text, "matmul+add+gelu"));
    CHECK(contains(text, "RAW on %"));
    CHECK(contains(text, "submit 1") == split);

    const std::string dot = program.dump(DumpFormat::dot);
    CHECK(dot == model.batch.dump(DumpFormat::dot).value());
    CHECK(dot.rfind("digraph", 0) == 0);
    CHECK(balanced(dot));

    const std::string json = program.dump(DumpFormat::json);
    CHECK(json == model.batch.dump(DumpFormat::json).value());
    const std::size_t end = json_end(json, 0);
    REQUIRE(end != std::string::npos);
    CHECK(json.find_first_not_of(" \n", end) == std::string::npos);
    for (const char* key :
         {"\"dispatches\"", "\"barriers\"", "\"submits\"", "\"arena_bytes\"", "\"level\"", "\"causes\""}) {
      INFO(key);
      CHECK(contains(json, key));
    }
    // A run changes nothing of it.
    REQUIRE_OK(program.run());
    CHECK(program.dump() == text);
  }
}

}  // namespace brontes::test
