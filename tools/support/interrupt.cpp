#include "interrupt.hpp"

#include <csignal>

namespace tool {
namespace {

volatile std::sig_atomic_t seen = 0;

extern "C" void on_interrupt(int signal) {
  seen = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void watch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

bool interrupted() noexcept { return seen != 0; }

}  // namespace tool
