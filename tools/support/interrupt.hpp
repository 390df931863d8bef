// Ctrl-C that lets a program keep what it has.
#pragma once

namespace tool {

/// From now on the first SIGINT or SIGTERM only makes interrupted() true; the next one ends the process as usual.
void watch_interrupts();

bool interrupted() noexcept;

/// The exit status of a program that was interrupted.
inline constexpr int exit_interrupted = 130;

}  // namespace tool
