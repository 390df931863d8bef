// Makes Brontes run on the spy (loader.hpp).
#pragma once

#include "loader.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace brontes::test {

/// Device::open() uses the spy while it lives. Skips the test where the spy cannot be found.
class Spy {
 public:
  Spy() {
    const char* path = std::getenv("BRONTES_SPY_LOADER");
    if (path == nullptr) SKIP("BRONTES_SPY_LOADER does not name the spy library; run through meson test");
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library_ != nullptr);
    find("spy_calls", calls);
    find("spy_fallible_calls", fallible_calls);
    find("spy_traced", traced);
    find("spy_results", results);
    find("spy_fail", fail_);
    find("spy_failed", failed);
    find("spy_disarm", disarm);
    find("spy_reset", reset);
    find("spy_kinds", kinds);
    find("spy_kind", kind);
    find("spy_live", live);
    find("spy_version", version);
    find("spy_break", break_opcode);
    find("spy_hide", hide);
    find("spy_function", function);
    find("spy_limit_memory", limit_memory);
    find("spy_memory", memory);
    find("spy_repeat_dispatches", repeat_dispatches);
    find("spy_memory_types", memory_types_);
    find("spy_in_driver", in_driver);
    find("spy_overlaps", overlaps);
    restore();
    setenv("BRONTES_VULKAN_LIBRARY", path, 1);
  }
  ~Spy() {
    unsetenv("BRONTES_VULKAN_LIBRARY");
    if (library_ == nullptr) return;
    restore();
    dlclose(library_);
  }
  Spy(const Spy&) = delete;
  Spy& operator=(const Spy&) = delete;

  void fail(const char* name, std::uint64_t skip, std::int32_t result, SpyMode mode = spy_once) const {
    fail_(name, skip, result, mode);
  }

  void memory_types(const std::vector<std::uint32_t>& flags) const {
    memory_types_(flags.data(), static_cast<std::uint32_t>(flags.size()));
  }

  /// "2 buffer, 1 device": the objects that are alive; empty if none is.
  std::string alive() const {
    std::string text;
    for (std::uint32_t i = 0; i < kinds(); ++i) {
      if (live(i) == 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(live(i)) + " " + kind(i);
    }
    return text;
  }

  decltype(&spy_calls) calls = nullptr;
  decltype(&spy_fallible_calls) fallible_calls = nullptr;
  decltype(&spy_traced) traced = nullptr;
  decltype(&spy_results) results = nullptr;
  decltype(&spy_failed) failed = nullptr;
  decltype(&spy_disarm) disarm = nullptr;
  decltype(&spy_reset) reset = nullptr;
  decltype(&spy_kinds) kinds = nullptr;
  decltype(&spy_kind) kind = nullptr;
  decltype(&spy_live) live = nullptr;
  decltype(&spy_version) version = nullptr;
  decltype(&spy_break) break_opcode = nullptr;
  decltype(&spy_hide) hide = nullptr;
  decltype(&spy_function) function = nullptr;
  decltype(&spy_limit_memory) limit_memory = nullptr;
  decltype(&spy_memory) memory = nullptr;
  decltype(&spy_repeat_dispatches) repeat_dispatches = nullptr;
  decltype(&spy_in_driver) in_driver = nullptr;
  decltype(&spy_overlaps) overlaps = nullptr;

 private:
  void restore() const {
    reset();
    version(0);
    break_opcode(0, 0);
    hide(nullptr);
    limit_memory(0);
    repeat_dispatches(nullptr, 1);
    memory_types({});
  }
  template <class Function>
  void find(const char* name, Function& found) {
    found = reinterpret_cast<Function>(dlsym(library_, name));
    REQUIRE(found != nullptr);
  }
  void* library_ = nullptr;
  decltype(&spy_fail) fail_ = nullptr;
  decltype(&spy_memory_types) memory_types_ = nullptr;
};

}  // namespace brontes::test
