// Traces: what the host and the device do, on one clock. tests/trace checks the format.
#include "fixture.hpp"
#include "on_devices.hpp"
#include "reference.hpp"

#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>

namespace brontes::test {
namespace {

struct Span {
  std::string name, category;
  double begin = 0, end = 0;  // microseconds
  long pid = 0, tid = 0;
  unsigned long long run = 0;
};

std::string field(const std::string& line, const std::string& key) {
  const std::size_t at = line.find("\"" + key + "\": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 4;
  if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

std::vector<Span> spans(const std::string& trace) {
  std::vector<Span> all;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    if (field(line, "ph") != "X") continue;
    Span span;
    span.name = field(line, "name");
    span.category = field(line, "cat");
    span.begin = std::strtod(field(line, "ts").c_str(), nullptr);
    span.end = span.begin + std::strtod(field(line, "dur").c_str(), nullptr);
    span.pid = std::strtol(field(line, "pid").c_str(), nullptr, 10);
    span.tid = std::strtol(field(line, "tid").c_str(), nullptr, 10);
    span.run = std::strtoull(field(line, "run").c_str(), nullptr, 10);
    all.push_back(span);
  }
  return all;
}

std::size_t count(const std::vector<Span>& all, const std::string& category, const std::string& name = {}) {
  std::size_t found = 0;
  for (const Span& s : all) found += s.category == category && (name.empty() || contains(s.name, name)) ? 1 : 0;
  return found;
}

// Every span of the device lies between the beginning of its submit and the end of the wait that saw it done.
void check_inside(const std::vector<Span>& all) {
  constexpr double rounding = 0.002;
  for (const Span& d : all) {
    if (d.category != "device") continue;
    INFO(d.name << " of run " << d.run);
    const Span* submit = nullptr;
    const Span* wait = nullptr;
    for (const Span& h : all) {
      if (h.category == "submit" && h.run == d.run) submit = &h;
      if (h.category == "wait" && h.run >= d.run && (wait == nullptr || h.end < wait->end)) wait = &h;
    }
    REQUIRE(submit != nullptr);
    REQUIRE(wait != nullptr);
    CHECK(d.begin >= submit->begin - rounding);
    CHECK(d.end <= wait->end + rounding);
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a trace has what the host does and, inside of it, what the device does", "[trace]") {
  on_devices([](const Device& device) {
    REQUIRE_OK(device.start_trace());
    Batch batch(device);
    const Tensor x = batch.upload(counting(1000));
    const Tensor y = batch.sum(batch.exp(batch.scale(batch.relu(x), 0.001f)));
    REQUIRE_OK(batch.execute());
    REQUIRE(batch.read(y).has_value());
    const auto trace = device.stop_trace();
    REQUIRE(trace.has_value());
    const std::vector<Span> all = spans(*trace);
    INFO(*trace);
    CHECK(count(all, "record", "upload") == 1);
    CHECK(count(all, "record", "relu") == 1);
    CHECK(count(all, "plan") == 1);
    CHECK(count(all, "encode") == 1);
    CHECK(count(all, "submit") == 1);
    CHECK(count(all, "wait") >= 1);
    CHECK(count(all, "read") == 1);
    CHECK(count(all, "device") == batch.stats().dispatches + batch.stats().copy_commands);
    CHECK(count(all, "device", "exp") + count(all, "device", "sum") >= 1);
    check_inside(all);
  });
}

TEST_CASE_METHOD(DeviceTest, "every run of a program that was compiled before is in the trace", "[trace]") {
  Batch batch(shared_device());
  const Tensor y = batch.log(batch.offset(batch.upload(counting(256)), 1));
  auto program = batch.compile();
  REQUIRE(program.has_value());
  REQUIRE_OK(program->run());
  const std::vector<float> plain = program->read(y).value();

  REQUIRE_OK(shared_device().start_trace());
  for (int i = 0; i < 3; ++i) REQUIRE_OK(program->run());
  // Several at once, for none of which anybody waits.
  for (int i = 0; i < 4; ++i) REQUIRE(program->submit().has_value());
  CHECK(program->read(y).value() == plain);
  REQUIRE(program->submit().has_value());
  const auto trace = shared_device().stop_trace();
  REQUIRE(trace.has_value());
  const std::vector<Span> all = spans(*trace);
  CHECK(count(all, "submit") == 8);
  std::map<unsigned long long, std::size_t> by_run;
  for (const Span& s : all) {
    if (s.category == "device") ++by_run[s.run];
  }
  CHECK(by_run.size() == 8);
  // The names of ops, not those of kernels.
  CHECK(count(all, "device", "log") == 8);
  check_inside(all);

  REQUIRE_OK(program->run());
  CHECK(program->read(y).value() == plain);
}

TEST_CASE_METHOD(DeviceTest, "spans of each thread have a track of their own and nest", "[trace]") {
  REQUIRE_OK(shared_device().start_trace());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 5; ++i) {
        Batch batch(shared_device());
        const Tensor y = batch.square(batch.upload(counting(64)));
        if (batch.execute()) return;
        (void)batch.read(y);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const auto trace = shared_device().stop_trace();
  REQUIRE(trace.has_value());
  std::map<std::pair<long, long>, std::vector<Span>> tracks;
  for (const Span& s : spans(*trace)) tracks[{s.pid, s.tid}].push_back(s);
  CHECK(tracks.size() == 4);
  for (const auto& [track, all] : tracks) {
    std::vector<double> open;
    for (const Span& s : all) {
      while (!open.empty() && open.back() <= s.begin + 0.0015) open.pop_back();
      if (!open.empty()) CHECK(s.end <= open.back() + 0.0015);
      open.push_back(s.end);
    }
  }
  check_inside(spans(*trace));
}

TEST_CASE_METHOD(DeviceTest, "tracing starts once and stops once", "[trace]") {
  const Device& device = shared_device();
  CHECK(device.stop_trace().error().code == Errc::invalid_argument);
  REQUIRE_OK(device.start_trace());
  CHECK(device.start_trace().code == Errc::invalid_argument);
  REQUIRE(device.stop_trace().has_value());
  CHECK(device.stop_trace().error().code == Errc::invalid_argument);
  REQUIRE_OK(device.start_trace());
  const auto empty = device.stop_trace();
  REQUIRE(empty.has_value());
  CHECK(spans(*empty).empty());
}

TEST_CASE_METHOD(DeviceTest, "spans past the limit are counted and not kept", "[trace]") {
  TraceOptions options;
  options.max_spans = 2;
  REQUIRE_OK(shared_device().start_trace(options));
  check_device_works(shared_device());
  const auto trace = shared_device().stop_trace();
  REQUIRE(trace.has_value());
  CHECK(spans(*trace).size() == 2);
  CHECK(!contains(*trace, "\"dropped_spans\": 0}"));
}

TEST_CASE_METHOD(DeviceTest, "without timestamps a trace has the host only, and says so", "[trace]") {
  DeviceOptions options = checked_options();
  options.simulate.no_timestamps = true;
  const Device device = open_device(options);
  REQUIRE_OK(device.start_trace());
  check_device_works(device);
  const auto trace = device.stop_trace();
  REQUIRE(trace.has_value());
  CHECK(count(spans(*trace), "device") == 0);
  CHECK(count(spans(*trace), "submit") > 0);
  CHECK(contains(*trace, "host only"));
}

TEST_CASE_METHOD(DeviceTest, "a device may be closed while it is being traced", "[trace]") {
  Device device = open_device();
  REQUIRE_OK(device.start_trace());
  Batch batch(device);
  (void)batch.relu(batch.upload(counting(100)));
  REQUIRE(batch.submit().has_value());
}

}  // namespace brontes::test
