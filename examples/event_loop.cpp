// One thread, several programs in flight: a loop that starts runs, looks after everything else, and takes results
// when they are ready.
#include <brontes/brontes.hpp>

#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using namespace std::chrono_literals;

// snippet: lane
// One program and the run of it that is under way, if any.
struct Lane {
  brontes::Program program;
  brontes::Tensor x, total;
  brontes::Submission run;
  float sent = 0;
  bool busy = false;
};
// end

brontes::Result<Lane> make_lane(const brontes::Device& device) {
  brontes::Batch batch(device);
  const auto x = batch.upload(std::vector<float>(1024));
  const auto total = batch.sum(batch.relu(x));
  auto program = batch.compile();
  if (!program) return program.error();
  return Lane{std::move(*program), x, total, {}};
}

int fail(const brontes::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main() {
  const auto device = brontes::Device::open();
  if (!device) return fail(device.error());
  std::vector<Lane> lanes;
  for (int i = 0; i < 4; ++i) {
    auto lane = make_lane(*device);
    if (!lane) return fail(lane.error());
    lanes.push_back(std::move(*lane));
  }

  constexpr int jobs = 60;
  int started = 0;
  int finished = 0;
  int turns = 0;
  std::vector<float> data(1024);
  // snippet: loop
  while (finished < jobs) {
    const Lane* waiting = nullptr;
    for (Lane& lane : lanes) {
      if (lane.busy && lane.run.ready()) {
        float total = 0;
        if (auto e = lane.program.read(lane.total, {&total, 1})) return fail(e);  // does not block: it is ready
        if (total != lane.sent * 1024) return 1;
        lane.busy = false;
        ++finished;
      }
      if (!lane.busy && started < jobs) {
        lane.sent = static_cast<float>(started++);
        data.assign(data.size(), lane.sent);
        if (auto e = lane.program.write(lane.x, data)) return fail(e);  // neither: the lane is idle
        auto run = lane.program.submit();
        if (!run) return fail(run.error());
        lane.run = *run;
        lane.busy = true;
      }
      if (lane.busy) waiting = &lane;
    }
    ++turns;  // here the loop serves sockets, timers and windows
    if (waiting == nullptr) continue;
    // Nothing else to do: sleep until a run is done, a millisecond at most.
    if (auto e = waiting->run.wait(1ms); e && e.code != brontes::Errc::timeout) return fail(e);
  }
  // end
  std::printf("%d runs on %zu lanes in %d turns\n", finished, lanes.size(), turns);
  return 0;
}
