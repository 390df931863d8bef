#include "injector.hpp"

#include "host_memory.hpp"
#include "spy.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <vector>

#include <unistd.h>

namespace brontes::test {
namespace {

constexpr std::int32_t device_lost = -4;
constexpr std::int32_t unknown = -13;
constexpr unsigned patience_seconds = 60;

std::atomic<std::size_t> injections_done{0};

/// What is under way, for whoever finds the process hanging or dead.
char current[512] = "";

void say_what_hung(int signal) {
  const char* what = signal == SIGALRM ? "\nhangs: " : "\ncrashed: ";
  static_cast<void>(!write(STDERR_FILENO, what, std::strlen(what)));
  static_cast<void>(!write(STDERR_FILENO, current, std::strlen(current)));
  static_cast<void>(!write(STDERR_FILENO, "\n", 1));
  std::signal(SIGABRT, SIG_DFL);
  std::signal(signal, SIG_DFL);
  signal == SIGALRM ? std::abort() : static_cast<void>(raise(signal));
}

void watch() {
  for (int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, say_what_hung);
}

struct Messages {
  std::mutex mutex;
  std::vector<std::string> validation;
  std::size_t abandoned = 0;
};
Messages& messages() {
  static Messages instance;
  return instance;
}

bool is_soak() {
  const char* value = std::getenv("BRONTES_SOAK");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

struct Fault {
  std::uint64_t index = 0;
  std::int32_t result = 0;  // 0: a host allocation
  SpyMode mode = spy_once;

  bool loses_device() const { return result == device_lost; }
  std::string text() const {
    const char* how = mode == spy_once ? "once" : mode == spy_from_then_on ? "from then on" : "lost";
    return (result == 0 ? "allocation " : "call ") + std::to_string(index) + ", result " + std::to_string(result) +
           ", " + how;
  }
};

class Injector {
 public:
  Injector(const std::string& name, const Injections& injections) : name_(name), injections_(injections) {}
  // Also where a check or an exception that escapes ends the test early.
  ~Injector() {
    host_memory::stop();
    host_memory::set_exempt(nullptr);
    alarm(0);
  }
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  std::size_t stride() const { return stride_; }

  void run() {
    watch();
    host_memory::set_exempt(spy_.in_driver);
    if (!make_world()) return;
    std::vector<Fault> faults = vulkan_faults();
    if (injections_.host) {
      const std::vector<Fault> more = host_faults();
      faults.insert(faults.end(), more.begin(), more.end());
    }
    if (!is_soak()) stride_ = 1 + static_cast<std::size_t>(seconds_for(faults) / injections_.seconds);
    for (std::size_t i = 0; i < faults.size(); i += stride_) inject(faults[i]);
    host_memory::set_exempt(nullptr);
    world_.reset();
    at_rest_.assign(spy_.kinds(), 0);
    alarm(0);
    INFO(name_);
    CHECK(alive() == "");
    // What an abandoned Device leaves behind on a host application's VkDevice, that one is closed with.
    if (ever_abandoned_) {
      take_messages();
    } else {
      check_messages("at the end");
    }
  }

 private:
  // With everything warm. False where there is no device.
  bool make_world() {
    const double begin = processor_seconds();
    world_ = injections_.make();
    for (int i = 0; i < 2; ++i) {
      const double start = processor_seconds();
      const Error e = world_->run();
      seconds_per_run_ = processor_seconds() - start;
      if (e.code == Errc::no_device || e.code == Errc::no_driver || e.code == Errc::no_loader) SKIP(e.message);
      INFO(name_ << ", with nothing failing: " << e.message);
      REQUIRE(e.code == Errc::ok);
      const char* wrong = world_->take_wrong();
      REQUIRE((wrong == nullptr ? "" : std::string(wrong)) == "");
    }
    seconds_per_world_ = processor_seconds() - begin;
    at_rest_.assign(spy_.kinds(), 0);
    for (std::uint32_t i = 0; i < spy_.kinds(); ++i) at_rest_[i] = spy_.live(i) - left_open_[i];
    return true;
  }

  // Of this process, so that a busy machine does not mean fewer injections.
  static double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

  // A world whose device is lost has to be made anew.
  double seconds_for(const std::vector<Fault>& faults) const {
    double total = 0;
    for (const Fault& fault : faults) {
      total += fault.loses_device() && world_->device() != nullptr ? seconds_per_world_ : 1.5 * seconds_per_run_;
    }
    return total;
  }

  std::vector<Fault> vulkan_faults() {
    spy_.reset();
    static_cast<void>(world_->run());
    std::vector<Fault> faults;
    const std::uint64_t calls = spy_.fallible_calls();
    for (std::uint64_t i = 0; i < calls; ++i) {
      const char* function = spy_.traced(i);
      std::int32_t results[16];
      std::uint32_t count = spy_.results(function, results, 15);
      results[count++] = unknown;
      for (std::uint32_t r = 0; r < count; ++r) {
        faults.push_back({i, results[r], spy_once});
        if (results[r] == device_lost) {
          faults.push_back({i, results[r], spy_lost});
        } else {
          faults.push_back({i, results[r], spy_from_then_on});
        }
      }
    }
    return faults;
  }

  std::vector<Fault> host_faults() {
    host_memory::count();
    static_cast<void>(world_->run());
    const std::uint64_t allocations = host_memory::stop();
    std::vector<Fault> faults;
    for (std::uint64_t i = 0; i < allocations; ++i) {
      faults.push_back({i, 0, spy_once});
      faults.push_back({i, 0, spy_from_then_on});
    }
    return faults;
  }

  void inject(const Fault& fault) {
    std::snprintf(current, sizeof current, "%s: %s", name_.c_str(), fault.text().c_str());
    alarm(patience_seconds);
    bool happened = false;
    const char* function = "operator new";
    Error error;
    if (fault.result == 0) {
      host_memory::fail(fault.index, fault.mode == spy_from_then_on);
      error = world_->run();
      host_memory::stop();
      happened = host_memory::failed();
    } else {
      spy_.reset();
      spy_.fail(nullptr, fault.index, fault.result, fault.mode);
      error = world_->run();
      if (const char* failed = spy_.failed(); failed != nullptr) {
        happened = true;
        function = failed;
      }
    }
    if (!happened) {
      spy_.disarm();
      settle(fault, function, error);
      return;
    }
    ++injections_done;
    if (fault.loses_device() && world_->device() != nullptr) {
      lose(fault, function, error);
    } else {
      spy_.disarm();
      settle(fault, function, error);
    }
  }

  // A lost device says so whatever is asked of it, and its world can be destroyed. The next one is as good as new.
  void lose(const Fault& fault, const char* function, const Error& error) {
    INFO(name_ << ": " << fault.text() << " in " << function << ": " << error.message);
    CHECK((error.code == Errc::ok || error.code == Errc::device_lost));
    check_results();
    // The loss may have gone unnoticed where nobody had to be told; the next call that asks the device finds out.
    if (error.code == Errc::device_lost) {
      CHECK(Buffer::create(*world_->device(), Shape(4)).error().code == Errc::device_lost);
      const Error again = world_->run();
      CHECK(again.code == Errc::device_lost);
      static_cast<void>(world_->take_wrong());
    }
    world_.reset();
    spy_.disarm();
    at_rest_.assign(spy_.kinds(), 0);
    CHECK(alive() == "");
    check_messages();
    make_world();
  }

  void settle(const Fault& fault, const char* function, const Error& error) {
    // Catch2 takes its time, so it is asked only where there is something to say.
    const bool bad_error = error.code != Errc::ok && error.message.empty();
    const char* wrong = world_->take_wrong();
    if (bad_error || wrong != nullptr) {
      FAIL_CHECK(name_ << ": " << fault.text() << " in " << function << ": '" << error.message << "', "
                       << (wrong == nullptr ? "" : wrong));
    }
    if (error.code != Errc::ok) {
      const Error again = world_->run();
      wrong = world_->take_wrong();
      if (again.code != Errc::ok || wrong != nullptr) {
        FAIL_CHECK(name_ << ": " << fault.text() << " in " << function << ": '" << error.message
                         << "', and once more: '" << again.message << "', " << (wrong == nullptr ? "" : wrong));
        world_.reset();
        make_world();
      }
    }
    if (world_->device() == nullptr) {
      const std::string left = alive();
      if (!left.empty()) FAIL_CHECK(name_ << ": " << fault.text() << " in " << function << " leaves " << left);
    }
    check_messages(fault.text() + " in " + function);
  }

  std::vector<std::int64_t> live_now() const {
    std::vector<std::int64_t> counts(spy_.kinds());
    for (std::uint32_t i = 0; i < spy_.kinds(); ++i) counts[i] = spy_.live(i);
    return counts;
  }

  void check_results() {
    const char* wrong = world_->take_wrong();
    CHECK((wrong == nullptr ? "" : std::string(wrong)) == "");
  }

  static std::vector<std::string> take_messages() {
    const std::lock_guard lock(messages().mutex);
    return std::exchange(messages().validation, {});
  }

  void check_messages(const std::string& when = "") {
    for (const std::string& message : take_messages()) FAIL_CHECK(name_ << ": " << when << ": " << message);
  }

  // The objects there are, but for those of a world at rest and of devices that were left open because nobody could
  // wait for them.
  std::string alive() {
    std::size_t abandoned = 0;
    {
      const std::lock_guard lock(messages().mutex);
      abandoned = std::exchange(messages().abandoned, 0);
    }
    ever_abandoned_ = ever_abandoned_ || abandoned != 0;
    std::string text;
    for (std::uint32_t i = 0; i < spy_.kinds(); ++i) {
      if (abandoned != 0) left_open_[i] = spy_.live(i) - at_rest_[i];
      const std::int64_t count = spy_.live(i) - left_open_[i] - at_rest_[i];
      if (count != 0) text += std::to_string(count) + " " + spy_.kind(i) + "; ";
    }
    return text;
  }

  std::string name_;
  const Injections& injections_;
  Spy spy_;
  std::unique_ptr<Workload> world_;
  double seconds_per_run_ = 0;
  double seconds_per_world_ = 0;
  std::size_t stride_ = 1;
  bool ever_abandoned_ = false;
  std::vector<std::int64_t> at_rest_ = std::vector<std::int64_t>(spy_.kinds());
  std::vector<std::int64_t> left_open_ = live_now();  // by earlier tests, too
};

}  // namespace

DeviceOptions world_options() {
  DeviceOptions options;
  const char* wanted = std::getenv("BRONTES_VALIDATION");
  options.validation = wanted != nullptr && std::strcmp(wanted, "1") == 0 ? Toggle::on : Toggle::off;
  options.pipeline_cache.enabled = false;
  options.tuning.enabled = false;
  options.on_message = [](Severity severity, const std::string& text) {
    if (severity == Severity::info) return;
    const std::lock_guard lock(messages().mutex);
    if (text.find("stays open") != std::string::npos) {
      ++messages().abandoned;
    } else if (text.rfind("brontes: ", 0) != 0) {  // the library's own
      messages().validation.push_back(text);
    }
  };
  return options;
}

void inject(const std::string& name, const Injections& injections) {
  const std::size_t before = injected();
  Injector injector(name, injections);
  injector.run();
  std::printf("%6zu  %s", injected() - before, name.c_str());
  if (injector.stride() != 1) std::printf(" (one in %zu)", injector.stride());
  std::printf("\n");
  std::fflush(stdout);
}

std::size_t injected() { return injections_done; }

}  // namespace brontes::test
