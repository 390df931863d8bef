// Measuring the matmul selector, using what was measured, and the tuning file through the public API. What
// measurements mean, and the bytes of the file, are tested without a device in unit/.
#include "fixture.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

namespace brontes::test {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "brontes-tuning-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(const std::string& name = "matmul.tuning") const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

DeviceOptions options_with(const std::string& path, std::vector<std::string>* notes = nullptr) {
  DeviceOptions options = checked_options();
  options.tuning.enabled = true;
  options.tuning.path = path;
  if (notes != nullptr) {
    options.on_message = [notes, recorded = options.on_message](Severity severity, const std::string& text) {
      notes->push_back(text);
      recorded(severity, text);
    };
  }
  return options;
}

const std::vector<MatmulShape> tiny = {{1, 64, 64, Layout::nk}, {4, 64, 64, Layout::nk}, {4, 64, 64, Layout::kn}};

TuneOptions tiny_tuning() {
  TuneOptions options;
  options.shapes = tiny;
  options.seconds = 300;  // drivers may be slow, and the machine busy
  options.compare_access = false;
  return options;
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  REQUIRE(out.good());
}

// Makes 2.5 of 1 in all elements, and moves 64 MiB with it, as often as told.
void move_much(const Device& device, int times) {
  const std::size_t count = 8 << 20;
  const Buffer ones = Buffer::from(device, std::vector<float>(count, 1.0f), {count}).value();
  const Buffer out = Buffer::create(device, {count}).value();
  for (int i = 0; i < times; ++i) {
    Batch batch(device);
    const Tensor x = batch.import_buffer(ones);
    batch.store(batch.add(x, batch.scale(x, 1.5f)), out);
    REQUIRE_OK(batch.execute());
    std::vector<float> result(count);
    REQUIRE_OK(out.read(result));
    CHECK(std::all_of(result.begin(), result.end(), [](float y) { return y == 2.5f; }));
  }
}

std::string reason(const Device& device, const MatmulShape& s) {
  return explain_matmul(device, s.m, s.k, s.n, {1.0f, s.layout, MatmulKernel::automatic}).reason;
}

void check_product(const Device& device, const MatmulShape& s) {
  const std::vector<float> a = cases::random_integers(s.m * s.k, 3, 1);
  const std::vector<float> b = cases::random_integers(s.k * s.n, 3, 2);
  const cases::MatmulReference want = cases::matmul(a, b, s.m, s.k, s.n, s.layout);
  Batch batch(device);
  const Tensor c =
      batch.matmul(batch.upload(a), batch.upload(b), s.m, s.k, s.n, {1.0f, s.layout, MatmulKernel::automatic});
  CHECK(cases::mismatch(run(batch, c), want, 0) == "");
}

void check_products(const Device& device) {
  for (const MatmulShape& s : tiny) check_product(device, s);
}

// Takes a CPU driver clearly longer than a submit.
const MatmulShape large{64, 256, 256, Layout::nk};

bool noted(const std::vector<std::string>& notes, const char* part) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) { return contains(note, part); });
}

// Nothing else was said.
void expect_warnings() {
  for (const std::string& message : take_messages()) CHECK(contains(message, "gives wrong results on this device"));
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "what was measured counts at once, and for the next device with the same file",
                 "[tuning]") {
  const Scratch scratch;
  TuningStatus first;
  {
    const Device device = open_device(options_with(scratch.file()));
    CHECK(device.tuning().state == TuningState::none);
    CHECK(device.tuning().path == scratch.file());
    CHECK_FALSE(contains(reason(device, tiny[0]), "measured"));
    const auto report = tune_matmul(device, tiny_tuning());
    REQUIRE_OK(report.error());
    REQUIRE(report->shapes.size() == tiny.size());
    CHECK(report->skipped == 0);
    CHECK_FALSE(report->stopped);
    CHECK(report->path == scratch.file());
    CHECK(report->note.empty());
    CHECK(report->access == device.info().access);
    CHECK(report->access_now == device.info().access);
    first = device.tuning();
    CHECK(first.state == TuningState::measured);
    CHECK(first.shapes == tiny.size());
    std::size_t changed = 0;
    for (std::size_t i = 0; i < tiny.size(); ++i) {
      const TunedShape& t = report->shapes[i];
      CHECK(t.default_seconds > 0);
      CHECK(t.seconds > 0);
      CHECK(contains(reason(device, tiny[i]), "measured on this device"));
      const MatmulChoice choice =
          explain_matmul(device, t.shape.m, t.shape.k, t.shape.n, {1.0f, t.shape.layout, MatmulKernel::automatic});
      CHECK(choice.kernel == t.kernel);
      if (t.variant == 0) {
        CHECK(t.kernel == t.default_kernel);
        CHECK(t.gain == 1);
      } else {
        CHECK(t.gain > 1.1);
        ++changed;
      }
    }
    CHECK(first.changed == changed);
    check_products(device);
  }
  const Device device = open_device(options_with(scratch.file()));
  CHECK(device.tuning().state == TuningState::loaded);
  CHECK(device.tuning().shapes == first.shapes);
  CHECK(device.tuning().changed == first.changed);
  CHECK(device.tuning().note.empty());
  for (const MatmulShape& s : tiny) CHECK(contains(reason(device, s), "measured on this device"));
  check_products(device);
}

TEST_CASE_METHOD(DeviceTest, "a variant that skips work is the fastest, and does not win", "[tuning][spy]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  spy.repeat_dispatches("matmul_subgroup", 0);
  const Scratch scratch;
  std::vector<std::string> notes;
  const Device device = open_device(options_with(scratch.file(), &notes));
  TuneOptions options = tiny_tuning();
  options.shapes = {large};
  const auto report = tune_matmul(device, options);
  REQUIRE_OK(report.error());
  REQUIRE(report->shapes.size() == 1);
  CHECK(report->shapes[0].kernel != MatmulKernel::subgroup);
  CHECK(noted(notes, "of the subgroup kernel, layout nk, gives wrong results on this device, and is left out"));
  check_product(device, large);
  expect_warnings();
}

TEST_CASE_METHOD(DeviceTest, "a choice from the file is compared with the reference once, before it counts",
                 "[tuning][spy]") {
  (void)shared_device();
  const Spy spy;
  const Scratch scratch;
  MatmulKernel stored = MatmulKernel::automatic;
  {
    // What the default runs on takes long, so that something else is measured to be faster.
    spy.repeat_dispatches("matmul_panel", 50);
    const Device device = open_device(options_with(scratch.file()));
    TuneOptions options = tiny_tuning();
    options.shapes = {large};
    const auto report = tune_matmul(device, options);
    REQUIRE_OK(report.error());
    REQUIRE(report->shapes[0].default_kernel == MatmulKernel::panel);
    stored = report->shapes[0].kernel;
    REQUIRE(stored != MatmulKernel::panel);
    REQUIRE(stored != MatmulKernel::naive);
  }
  {
    spy.repeat_dispatches((std::string("matmul_") + to_string(stored)).c_str(), 0);
    std::vector<std::string> notes;
    const Device device = open_device(options_with(scratch.file(), &notes));
    CHECK(device.tuning().changed == 1);
    check_product(device, large);
    CHECK(device.tuning().changed == 0);
    CHECK(noted(notes, "gives wrong results on this device, and is not used"));
    CHECK_FALSE(contains(reason(device, large), "measured"));
    expect_warnings();
  }
  // Once per process: the second device believes the first, but for what was wrong there.
  spy.repeat_dispatches(nullptr, 1);
  for (const bool again : {false, true}) {
    std::vector<std::string> notes;
    const Device device = open_device(options_with(scratch.file(), &notes));
    CHECK(device.tuning().changed == 1);
    check_product(device, large);
    const std::uint64_t made = device.stats().pipelines_created;
    CHECK(made == (again ? 1 : 3));  // the product's, and for the small one this kernel's and the naive one's
    check_product(device, large);
    CHECK(device.stats().pipelines_created == made);
    CHECK(device.tuning().changed == 1);
    CHECK(notes.empty());
  }
}

TEST_CASE_METHOD(DeviceTest, "tuning takes its times from the device where its queue has timestamps", "[tuning][spy]") {
  (void)shared_device();
  for (const bool timestamps : {true, false}) {
    const Spy spy;
    DeviceOptions options = options_with("");
    options.simulate.no_timestamps = !timestamps;
    const Device device = open_device(options);
    const std::uint64_t before = spy.calls("vkCmdWriteTimestamp");
    TuneOptions tuning = tiny_tuning();
    tuning.shapes = {large};
    tuning.save = false;
    REQUIRE_OK(tune_matmul(device, tuning).error());
    CHECK((spy.calls("vkCmdWriteTimestamp") > before) == timestamps);
  }
}

TEST_CASE_METHOD(DeviceTest, "the file lies beside the pipeline cache unless it has a place of its own", "[tuning]") {
  const Scratch scratch;
  DeviceOptions options = options_with("");
  options.pipeline_cache.path = scratch.file("cache.bin");
  CHECK(open_device(options).tuning().path == scratch.file("cache.bin.tuning"));
  options.pipeline_cache.path.clear();
  const TuningStatus by_default = open_device(options).tuning();
  CHECK((by_default.path.empty() || contains(by_default.path, "/brontes/matmul-")));
  options.simulate.staged_memory = true;
  const TuningStatus simulated = open_device(options).tuning();
  CHECK(simulated.path.empty());
  CHECK(contains(simulated.note, "simulated"));
}

TEST_CASE_METHOD(DeviceTest, "a damaged file means a note and the defaults, and is replaced by the next tuning",
                 "[tuning]") {
  const Scratch scratch;
  const std::string path = scratch.file();
  TuneOptions one = tiny_tuning();
  one.shapes.resize(1);
  REQUIRE_OK(tune_matmul(open_device(options_with(path)), one).error());
  const std::string good = slurp(path);
  REQUIRE(good.size() > 100);
  std::vector<std::string> damaged = {"", "text", good + "more", good.substr(0, good.size() / 2),
                                      good.substr(0, good.size() - 1)};
  for (std::size_t at : {std::size_t{3}, std::size_t{40}, good.size() - 5}) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 4);
  }
  for (const std::string& bytes : damaged) {
    INFO(bytes.size() << " of " << good.size() << " bytes");
    spill(path, bytes);
    std::vector<std::string> notes;
    const Device device = open_device(options_with(path, &notes));
    CHECK(device.tuning().state == TuningState::rejected);
    CHECK(contains(device.tuning().note, path));
    CHECK(device.tuning().shapes == 0);
    REQUIRE_FALSE(notes.empty());
    CHECK(contains(notes[0], path));
    CHECK_FALSE(contains(reason(device, tiny[0]), "measured"));
  }
  const Device device = open_device(options_with(path));
  check_products(device);
  REQUIRE_OK(tune_matmul(device, one).error());
  CHECK(device.tuning().state == TuningState::measured);
  CHECK(device.tuning().note.empty());
  CHECK(open_device(options_with(path)).tuning().state == TuningState::loaded);
}

TEST_CASE_METHOD(DeviceTest, "tuning that is off is neither read nor done", "[tuning]") {
  const Scratch scratch;
  TuneOptions one = tiny_tuning();
  one.shapes.resize(1);
  REQUIRE_OK(tune_matmul(open_device(options_with(scratch.file())), one).error());
  DeviceOptions options = options_with(scratch.file());
  options.tuning.enabled = false;
  const Device device = open_device(options);
  CHECK(device.tuning().state == TuningState::off);
  CHECK_FALSE(contains(reason(device, tiny[0]), "measured"));
  CHECK(tune_matmul(device, one).error().code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "tuning can be watched and stopped, and what cannot be measured is skipped", "[tuning]") {
  const Scratch scratch;
  const Device device = open_device(options_with(scratch.file()));
  TuneOptions options = tiny_tuning();
  options.shapes.push_back({std::uint64_t{1} << 40, std::uint64_t{1} << 40, 1, Layout::kn});
  std::vector<std::size_t> seen;
  options.on_progress = [&](const TuneProgress& progress) {
    CHECK(progress.total == 4);
    seen.push_back(progress.done);
    return progress.done < 2;
  };
  const auto report = tune_matmul(device, options);
  REQUIRE_OK(report.error());
  CHECK(report->stopped);
  CHECK(report->shapes.size() == 1);
  CHECK(report->skipped == 3);
  CHECK(seen == std::vector<std::size_t>{1, 1, 2});  // the one that is too large counts as done
  CHECK(device.tuning().shapes == 1);

  options.on_progress = [](const TuneProgress&) { return false; };
  const auto nothing = tune_matmul(device, options);
  REQUIRE_OK(nothing.error());
  CHECK(nothing->stopped);
  CHECK(nothing->shapes.empty());
  CHECK(device.tuning().shapes == 1);

  // Measurements of other shapes stay.
  options = tiny_tuning();
  options.shapes.erase(options.shapes.begin(), options.shapes.begin() + 2);
  options.save = false;
  const auto more = tune_matmul(device, options);
  REQUIRE_OK(more.error());
  CHECK(more->path.empty());
  CHECK(device.tuning().shapes == 2);
  CHECK(open_device(options_with(scratch.file())).tuning().shapes == 1);
}

TEST_CASE_METHOD(DeviceTest, "without time nothing is measured, and nonsense is refused", "[tuning]") {
  const Scratch scratch;
  const Device device = open_device(options_with(scratch.file()));
  TuneOptions options = tiny_tuning();
  options.seconds = 1e-9;
  const auto report = tune_matmul(device, options);
  REQUIRE_OK(report.error());
  CHECK(report->shapes.empty());
  CHECK(report->skipped == tiny.size());
  CHECK(device.tuning().state == TuningState::none);
  CHECK_FALSE(fs::exists(scratch.file()));
  options.seconds = 0;
  CHECK(tune_matmul(device, options).error().code == Errc::invalid_argument);
  options = tiny_tuning();
  options.shapes[1].k = 0;
  CHECK(tune_matmul(device, options).error().code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "a file that cannot be written is a note, and the measurements count all the same",
                 "[tuning]") {
  const Scratch scratch;
  spill(scratch.file("file"), "in the way");
  const Device device = open_device(options_with(scratch.file("file/matmul.tuning")));
  TuneOptions one = tiny_tuning();
  one.shapes.resize(1);
  const auto report = tune_matmul(device, one);
  REQUIRE_OK(report.error());
  CHECK(report->path.empty());
  CHECK(contains(report->note, scratch.file("file/matmul.tuning")));
  CHECK(contains(reason(device, tiny[0]), "measured on this device"));
}

TEST_CASE_METHOD(DeviceTest, "ways to reach memory are compared, and the next device takes the fastest", "[tuning]") {
  const Scratch scratch;
  TuneOptions one = tiny_tuning();
  one.shapes.resize(1);
  one.compare_access = true;
  AccessMode fastest{};
  {
    const Device device = open_device(options_with(scratch.file()));
    const auto report = tune_matmul(device, one);
    REQUIRE_OK(report.error());
    fastest = report->access;
    CHECK(fastest != AccessMode::automatic);
    CHECK(report->access_now == device.info().access);
    CHECK(contains(reason(device, tiny[0]), "measured on this device") == (fastest == device.info().access));
  }
  const Device device = open_device(options_with(scratch.file()));
  CHECK(device.info().access == fastest);
  CHECK(contains(reason(device, tiny[0]), "measured on this device"));
  check_products(device);

  // Measurements made in one mode say nothing of another.
  DeviceOptions other = options_with(scratch.file());
  other.access = fastest == AccessMode::storage ? AccessMode::texel : AccessMode::storage;
  CHECK_FALSE(contains(reason(open_device(other), tiny[0]), "measured"));
}

TEST_CASE_METHOD(DeviceTest, "much elementwise work has a CPU driver calibrated, once", "[tuning]") {
  const Scratch scratch;
  {
    const Device device = open_device(options_with(scratch.file()));
    const bool cpu = device.info().type == DeviceType::cpu;
    move_much(device, 1);
    CHECK(device.tuning().state == TuningState::none);
    // On a busy machine it may take more than one try: each has 0.15 s, and builds some of the kernels.
    for (int i = 0; i < 8 && device.tuning().state == TuningState::none; ++i) move_much(device, 4);
    CHECK(device.tuning().state == (cpu ? TuningState::measured : TuningState::none));
    CHECK(fs::exists(scratch.file()) == cpu);
    if (!cpu) return;
  }
  const std::string remembered = slurp(scratch.file());
  const Device device = open_device(options_with(scratch.file()));
  CHECK(device.tuning().state == TuningState::loaded);
  move_much(device, 5);
  CHECK(device.tuning().state == TuningState::loaded);
  CHECK(slurp(scratch.file()) == remembered);
}

TEST_CASE_METHOD(DeviceTest, "nothing is calibrated where that is not wanted", "[tuning]") {
  const Scratch scratch;
  DeviceOptions off = options_with(scratch.file());
  off.tuning.calibrate = false;
  DeviceOptions forced = options_with(scratch.file());
  forced.access = AccessMode::storage;
  for (const DeviceOptions& options : {off, forced}) {
    const Device device = open_device(options);
    move_much(device, 4);
    CHECK(device.tuning().state == TuningState::none);
  }
  CHECK_FALSE(fs::exists(scratch.file()));
}

TEST_CASE_METHOD(DeviceTest, "other threads may plan and run while the device is tuned", "[tuning][threads]") {
  const Scratch scratch;
  const Device device = open_device(options_with(scratch.file()));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread other([&] {
    const std::vector<float> ones(64 * 64, 1.0f);
    while (!done) {
      Batch batch(device);
      const Tensor c = batch.matmul(batch.upload(Span<const float>(ones.data(), 256), {4, 64}),
                                    batch.upload(ones, {64, 64}), {1.0f, Layout::nk, MatmulKernel::automatic});
      if (batch.execute() || batch.read(c).value() != std::vector<float>(256, 64.0f)) ++wrong;
    }
  });
  TuneOptions options = tiny_tuning();
  options.shapes.erase(options.shapes.begin());
  for (int i = 0; i < 3; ++i) {
    const auto report = tune_matmul(device, options);
    if (!report) ++wrong;
  }
  done = true;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE_METHOD(DeviceTest, "the default shapes are sensible, and the cheapest come first", "[tuning]") {
  for (bool quick : {true, false}) {
    const auto shapes = default_tune_shapes(quick);
    CHECK(shapes.size() >= 8);
    std::uint64_t work = 0;
    for (const MatmulShape& s : shapes) {
      CHECK(s.m * s.k * s.n >= work);
      work = s.m * s.k * s.n;
    }
  }
  CHECK(default_tune_shapes(true).size() < default_tune_shapes().size());
}

TEST_CASE_METHOD(DeviceTest, "tuning states have names", "[tuning]") {
  CHECK(std::string(to_string(TuningState::off)) == "off");
  CHECK(std::string(to_string(TuningState::none)) == "none");
  CHECK(std::string(to_string(TuningState::loaded)) == "loaded");
  CHECK(std::string(to_string(TuningState::measured)) == "measured");
  CHECK(std::string(to_string(TuningState::rejected)) == "rejected");
}

}  // namespace brontes::test
