#include "submit/traced_run.hpp"

#include "submit/ticks_of.hpp"

#include <algorithm>
#include <utility>

namespace brontes::submit {

TracedRun::TracedRun(const vk::Context& context, encode::TimedRun run, std::vector<Name> names)
    : context_(context), run_(std::move(run)), names_(std::move(names)) {}

void TracedRun::submitted(std::uint64_t value, double when) noexcept {
  value_ = value;
  submitted_ = when;
  run_.marks.timestamps->last_use = value;
  pending_.store(true, std::memory_order_release);
}

// Where the device's clock cannot be compared with the host's, the run lies in the middle of the time from its submit
// to when it was seen to be done: off by half of what is left of that, at most.
double TracedRun::begin_on_host(std::uint64_t first, double length, const trace::Recorder& recorder) const {
  if (const auto moment = context_.moment()) return moment->host - ticks_of(context_).between(first, moment->ticks);
  const double slack = recorder.seen(value_) - submitted_ - length;
  return submitted_ + std::max(0.0, slack) / 2;
}

void TracedRun::collect(trace::Recorder& recorder) {
  const std::vector<encode::Marks::Mark>& marks = run_.marks.all;
  const auto ticks = run_.marks.timestamps->read(marks.size());
  // A run that was lost with its device has no times.
  if (ticks && !ticks->empty()) {
    const std::vector<double> times = ticks_of(context_).since_first(*ticks);
    const double begin = begin_on_host(ticks->front(), times.back(), recorder);
    for (std::size_t i = 1; i < marks.size(); ++i) {
      if (marks[i].what == encode::Marks::What::begin) continue;
      recorder.add_device(names_[i].op, names_[i].kernel, begin + times[i - 1], begin + times[i], value_);
    }
  }
  forget();
}

}  // namespace brontes::submit
