#include "submit/traced_run.hpp"

#include "submit/ticks_of.hpp"

#include <utility>

namespace brontes::submit {

TracedRun::TracedRun(vk::Context& context, encode::TimedRun run, std::vector<Name> names)
    : context_(context), run_(std::move(run)), names_(std::move(names)) {}

void TracedRun::submitted(std::uint64_t value, double when) noexcept {
  value_ = value;
  submitted_ = when;
  run_.marks.timestamps->last_use = value;
  pending_.store(true, std::memory_order_release);
}

void TracedRun::collect(trace::Recorder& recorder) {
  // Submitted by another thread while the trace ended: nobody has waited for it, and it stays in use.
  if (!context_.queue().reached(value_)) return;
  const std::vector<encode::Marks::Mark>& marks = run_.marks.all;
  const auto ticks = run_.marks.timestamps->read(marks.size());
  // A run that was lost with its device has no times.
  if (ticks && !ticks->empty()) {
    const profile::Ticks clock = ticks_of(context_);
    const std::vector<double> times = clock.since_first(*ticks);
    const double begin = clock.apart(recorder.first_tick(ticks->front()), ticks->front());
    recorder.bound_offset(submitted_ - begin, recorder.seen(value_) - (begin + times.back()));
    for (std::size_t i = 1; i < marks.size(); ++i) {
      if (marks[i].what == encode::Marks::What::begin) continue;
      recorder.add_device(names_[i].op, names_[i].kernel, begin + times[i - 1], begin + times[i], value_);
    }
  }
  forget();
}

}  // namespace brontes::submit
