// The pipeline-cache file through the public API; its format is tested without a device in unit/.
#include "child.hpp"
#include "fixture.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace brontes::test {
namespace {

namespace fs = std::filesystem;

// A directory of this test's own, gone afterwards.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "brontes-cache-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(const std::string& name = "pipelines.bin") const { return (path_ / name).string(); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Notes {
  std::vector<std::string> texts;
  std::vector<Severity> severities;
};

DeviceOptions options_with(const std::string& path, Notes* notes = nullptr) {
  DeviceOptions options = checked_options();
  options.validation = Toggle::off;  // many opens; the suite as a whole runs with it on
  options.pipeline_cache.enabled = true;
  options.pipeline_cache.path = path;
  if (notes != nullptr) {
    options.on_message = [notes](Severity severity, const std::string& text) {
      notes->texts.push_back(text);
      notes->severities.push_back(severity);
    };
  }
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

// A valid file, made by running something.
std::string make_cache(const std::string& path) {
  {
    const Device device = open_device(options_with(path));
    check_device_works(device);
    REQUIRE_OK(device.save_pipeline_cache());
  }
  const std::string bytes = slurp(path);
  REQUIRE(bytes.size() > 100);
  return bytes;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the first run is cold, the second warm", "[cache]") {
  const Scratch scratch;
  const std::string path = scratch.file();
  {
    const Device device = open_device(options_with(path));
    CHECK(device.pipeline_cache().state == PipelineCacheState::cold);
    CHECK(device.pipeline_cache().path == path);
    CHECK(device.pipeline_cache().bytes_loaded == 0);
    CHECK(device.pipeline_cache().note.empty());
    check_device_works(device);
  }
  REQUIRE(fs::exists(path));
  const Device device = open_device(options_with(path));
  CHECK(device.pipeline_cache().state == PipelineCacheState::warm);
  CHECK(device.pipeline_cache().bytes_loaded > 0);
  CHECK(device.pipeline_cache().note.empty());
  check_device_works(device);
}

TEST_CASE_METHOD(DeviceTest, "missing directories of the path are made", "[cache]") {
  const Scratch scratch;
  const std::string path = scratch.file("some/folder/below/cache.bin");
  (void)make_cache(path);
  CHECK(fs::exists(path));
}

TEST_CASE_METHOD(DeviceTest, "nothing is saved at close unless asked for and pipelines were created", "[cache]") {
  const Scratch scratch;
  { const Device device = open_device(options_with(scratch.file("unused"))); }
  CHECK_FALSE(fs::exists(scratch.file("unused")));
  {
    DeviceOptions options = options_with(scratch.file("declined"));
    options.pipeline_cache.save_on_close = false;
    const Device device = open_device(options);
    check_device_works(device);
  }
  CHECK_FALSE(fs::exists(scratch.file("declined")));
}

TEST_CASE_METHOD(DeviceTest, "an application may keep the bytes of the cache itself", "[cache]") {
  const Scratch scratch;
  std::vector<std::uint8_t> kept;
  int loads = 0, stores = 0;
  DeviceOptions options = options_with(scratch.file("not-used"));
  options.pipeline_cache.load = [&] { return ++loads, kept; };
  options.pipeline_cache.store = [&](const std::vector<std::uint8_t>& bytes) { return ++stores, kept = bytes, true; };
  {
    const Device device = open_device(options);
    CHECK(device.pipeline_cache().state == PipelineCacheState::cold);
    CHECK(device.pipeline_cache().path.empty());
    check_device_works(device);
    REQUIRE_FALSE(device.save_pipeline_cache());
    CHECK(stores == 1);
  }
  CHECK(stores == 1);  // nothing is new when the Device is closed
  REQUIRE_FALSE(kept.empty());
  {
    const Device device = open_device(options);
    CHECK(device.pipeline_cache().state == PipelineCacheState::warm);
    CHECK(device.pipeline_cache().bytes_loaded > 0);
    check_device_works(device);
  }
  CHECK(loads == 2);
  CHECK(stores == 2);

  SECTION("damaged bytes are a cold start") {
    kept[kept.size() / 2] ^= 1;
    const Device device = open_device(options);
    CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
    CHECK_FALSE(device.pipeline_cache().note.empty());
    check_device_works(device);
  }
  SECTION("what cannot be kept is an error of saving, and closing goes on") {
    options.pipeline_cache.store = [](const std::vector<std::uint8_t>&) { return false; };
    const Device device = open_device(options);
    check_device_works(device);
    CHECK(device.save_pipeline_cache().code == Errc::io);
  }
  SECTION("an exception is a failure") {
    options.pipeline_cache.load = []() -> std::vector<std::uint8_t> { throw 1; };
    options.pipeline_cache.store = [](const std::vector<std::uint8_t>&) -> bool { throw 1; };
    const Device device = open_device(options);
    CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
    check_device_works(device);
    CHECK(device.save_pipeline_cache().code == Errc::io);
  }
  SECTION("without a way to store there is nothing to save to") {
    options.pipeline_cache.store = nullptr;
    const Device device = open_device(options);
    CHECK(device.pipeline_cache().state == PipelineCacheState::warm);
    check_device_works(device);
    CHECK(device.save_pipeline_cache().code == Errc::invalid_argument);
  }
  CHECK(fs::is_empty(scratch.path()));
}

TEST_CASE_METHOD(DeviceTest, "a cache that is off is neither read nor written", "[cache]") {
  const Scratch scratch;
  DeviceOptions options = options_with(scratch.file());
  options.pipeline_cache.enabled = false;
  {
    const Device device = open_device(options);
    CHECK(device.pipeline_cache().state == PipelineCacheState::off);
    CHECK(device.pipeline_cache().path.empty());
    check_device_works(device);
    CHECK(device.save_pipeline_cache().code == Errc::invalid_argument);
  }
  CHECK(fs::is_empty(scratch.path()));
}

TEST_CASE_METHOD(DeviceTest, "a truncated file is a cold start with a note, and is replaced", "[cache]") {
  const Scratch scratch;
  const std::string path = scratch.file();
  const std::string good = make_cache(path);
  // Opening a device for each length takes a while, so only the soak run does them all.
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n < good.size(); n += soak() ? 1 : good.size() / 12 + 1) lengths.push_back(n);
  lengths.push_back(good.size() - 1);
  for (std::size_t length : lengths) {
    INFO(length << " of " << good.size() << " bytes");
    spill(path, good.substr(0, length));
    Notes notes;
    {
      const Device device = open_device(options_with(path, &notes));
      CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
      CHECK(contains(device.pipeline_cache().note, path));
      CHECK(device.pipeline_cache().bytes_loaded == 0);
      REQUIRE_FALSE(notes.texts.empty());
      CHECK(contains(notes.texts[0], path));
      CHECK(contains(notes.texts[0], "brontes: "));
      CHECK(notes.severities[0] == Severity::warning);
      if (length == 0) check_device_works(device);
      REQUIRE_OK(device.save_pipeline_cache());
    }
    CHECK(open_device(options_with(path)).pipeline_cache().state == PipelineCacheState::warm);
  }
}

TEST_CASE_METHOD(DeviceTest, "a flipped bit in header or payload is a cold start with a note", "[cache]") {
  const Scratch scratch;
  const std::string path = scratch.file();
  const std::string good = make_cache(path);
  const std::size_t step = soak() ? 1 : good.size() / 16 + 1;
  for (std::size_t at = 0; at < good.size(); at += step) {
    INFO("byte " << at << " of " << good.size());
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    spill(path, bad);
    const Device device = open_device(options_with(path));
    CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
    CHECK_FALSE(device.pipeline_cache().note.empty());
  }
}

TEST_CASE_METHOD(DeviceTest, "foreign files, directories and longer files are a cold start with a note", "[cache]") {
  const Scratch scratch;
  const std::string good = make_cache(scratch.file("good"));
  spill(scratch.file("text"), std::string(500, 'x'));
  spill(scratch.file("longer"), good + "more");
  spill(scratch.file("empty"), "");
  fs::create_directory(scratch.file("directory"));
  for (const char* name : {"text", "longer", "empty", "directory"}) {
    INFO(name);
    const Device device = open_device(options_with(scratch.file(name)));
    CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
    CHECK(contains(device.pipeline_cache().note, scratch.file(name)));
  }
}

TEST_CASE_METHOD(DeviceTest, "a path that is no regular file is not used, not replaced, and noted at open and close",
                 "[cache]") {
  const Scratch scratch;
  fs::create_symlink("nowhere", scratch.file("link"));
  REQUIRE(mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  std::vector<std::pair<std::string, std::string>> paths = {{scratch.file("link"), "it is a symbolic link"},
                                                            {scratch.file("fifo"), "it is a FIFO"}};
  // Like /dev/null, which root could do harm to.
  if (geteuid() != 0) {
    paths.emplace_back("/dev/null", "it is a character device");
  } else if (mknod(scratch.file("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    paths.emplace_back(scratch.file("null"), "it is a character device");
  }
  for (const auto& [path, reason] : paths) {
    INFO(path);
    const fs::file_type before = fs::symlink_status(path).type();
    Notes notes;
    {
      DeviceOptions options = options_with(path, &notes);
      options.tuning.enabled = true;
      const Device device = open_device(options);
      CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
      CHECK(contains(device.pipeline_cache().note, reason));
      CHECK(device.tuning().state == TuningState::rejected);
      CHECK(contains(device.tuning().note, reason));
      REQUIRE_FALSE(notes.texts.empty());
      CHECK(contains(notes.texts[0], reason));
      check_device_works(device);
      const Error error = device.save_pipeline_cache();
      CHECK(error.code == Errc::io);
      CHECK(contains(error.message, reason));
      notes.texts.clear();
    }
    REQUIRE_FALSE(notes.texts.empty());
    CHECK(contains(notes.texts[0], reason));
    CHECK(fs::symlink_status(path).type() == before);
  }
}

TEST_CASE_METHOD(DeviceTest, "a cache or tuning file that every user may write to is not used", "[cache][tuning]") {
  const Scratch scratch;
  const std::string path = scratch.file();
  (void)make_cache(path);
  spill(path + ".tuning", "anything");
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  fs::permissions(path + ".tuning", fs::perms::others_write, fs::perm_options::add);
  DeviceOptions options = options_with(path);
  options.tuning.enabled = true;
  const Device device = open_device(options);
  CHECK(device.pipeline_cache().state == PipelineCacheState::rejected);
  CHECK(contains(device.pipeline_cache().note, "every user may write to it"));
  CHECK(device.tuning().state == TuningState::rejected);
  CHECK(contains(device.tuning().note, "every user may write to it"));
}

TEST_CASE_METHOD(DeviceTest, "a place that cannot be written is an io error on saving and no failure elsewhere",
                 "[cache]") {
  const Scratch scratch;
  spill(scratch.file("file"), "in the way");
  // Below a file there can be no file, also for root.
  const std::string path = scratch.file("file/cache.bin");
  Notes notes;
  {
    const Device device = open_device(options_with(path, &notes));
    CHECK(device.pipeline_cache().state != PipelineCacheState::warm);
    check_device_works(device);
    const Error error = device.save_pipeline_cache();
    CHECK(error.code == Errc::io);
    CHECK(contains(error.message, path));
    notes.texts.clear();
  }
  REQUIRE_FALSE(notes.texts.empty());
  CHECK(contains(notes.texts[0], path));
  CHECK(slurp(scratch.file("file")) == "in the way");
}

TEST_CASE_METHOD(DeviceTest, "a read-only directory is an io error on saving; a read-only file is replaced or kept",
                 "[cache]") {
  if (geteuid() == 0) SKIP("root may write anywhere");
  const Scratch scratch;
  const std::string path = scratch.file();
  const std::string good = make_cache(path);
  fs::permissions(path, fs::perms::owner_read);
  {
    const Device device = open_device(options_with(path));
    CHECK(device.pipeline_cache().state == PipelineCacheState::warm);
    check_device_works(device);
  }
  fs::permissions(scratch.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const Device device = open_device(options_with(path));
  CHECK(device.pipeline_cache().state == PipelineCacheState::warm);
  CHECK(device.save_pipeline_cache().code == Errc::io);
  check_device_works(device);
}

TEST_CASE_METHOD(DeviceTest, "eight processes saving at once leave a valid file and nothing else", "[cache]") {
  const Scratch scratch;
  const std::string path = scratch.file();
  (void)shared_device();
  for (const ChildResult& child : run_children(8, {"save-cache", path})) {
    CHECK(child.status == 0);
    // Each found no file or a whole one, never a damaged one.
    CHECK((child.output == "cold\n" || child.output == "warm\n"));
  }
  const Device device = open_device(options_with(path));
  CHECK(device.pipeline_cache().state == PipelineCacheState::warm);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(scratch.path())) ++files;
  CHECK(files == 1);
}

TEST_CASE_METHOD(DeviceTest, "the default file lies below XDG_CACHE_HOME, else below the home directory", "[cache]") {
  (void)shared_device();
  const Scratch scratch;
  const std::string xdg = scratch.file("xdg");
  const ChildResult first = run_child({"default-cache"}, {{"XDG_CACHE_HOME", xdg}});
  CHECK(first.status == 0);
  CHECK(contains(first.output, "cold\n" + xdg + "/brontes/"));
  const ChildResult second = run_child({"default-cache"}, {{"XDG_CACHE_HOME", xdg}});
  CHECK(contains(second.output, "warm\n" + xdg + "/brontes/"));

  const std::string home = scratch.file("home");
  fs::create_directory(home);
  const ChildResult at_home = run_child({"default-cache"}, {{"XDG_CACHE_HOME", ""}, {"HOME", home}});
  CHECK(at_home.status == 0);
  CHECK(contains(at_home.output, "cold\n" + home + "/.cache/brontes/"));

  const ChildResult nowhere = run_child({"default-cache"}, {{"XDG_CACHE_HOME", ""}, {"HOME", ""}});
  CHECK(nowhere.status == 0);
  CHECK(contains(nowhere.output, "off\n\n"));
  CHECK(nowhere.output.size() > 8);
}

TEST_CASE_METHOD(DeviceTest, "cache states have names", "[cache]") {
  CHECK(std::string(to_string(PipelineCacheState::off)) == "off");
  CHECK(std::string(to_string(PipelineCacheState::cold)) == "cold");
  CHECK(std::string(to_string(PipelineCacheState::warm)) == "warm");
  CHECK(std::string(to_string(PipelineCacheState::rejected)) == "rejected");
}

}  // namespace brontes::test
