// Devices that are still open when the process ends, in globals say. The driver and its layers have globals of their
// own, which the C library destroys in the reverse order of their making: before globals of the application, whose
// destructors would then call into a driver that is no more. So open devices are brought to rest first.
//
// Drivers make globals lazily, too: Mesa's compiler when it first compiles, which lavapipe does as a dispatch runs.
// Hence renew(). What is left is a process that ends while a driver compiles for the very first time.
#pragma once

namespace brontes::vk {

class Context;

/// A Context's place in the list of those that are open.
///
/// Thread-safety: any thread.
class AtExit {
 public:
  explicit AtExit(Context& context) noexcept : context_(context) {}
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;

  /// Context::end() will be called when the process ends, before the globals of whatever is loaded by now go. Where
  /// this is code of a plug-in, when that is unloaded.
  void watch() noexcept;
  /// Not any more. Waits while Context::end() runs.
  void forget() noexcept;
  /// For every Context: also before the globals that were made since.
  static void renew() noexcept;

 private:
  static void end_all() noexcept;

  Context& context_;
  AtExit* previous_ = nullptr;
  AtExit* next_ = nullptr;
  bool watched_ = false;
};

}  // namespace brontes::vk
