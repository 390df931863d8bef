// What a batch does, and the same by Vulkan calls alone, as a user would write them for this one purpose.
//
//   raw/one-op/64       one op on 64 elements, recorded, submitted and waited for
//   raw/chain-3/64      three ops, each on the result of the one before
//   raw/tiny-ops/1000   1000 independent ops on 64 elements, with a result each
//   raw/replay-1/64, raw/replay-1000/64   the first and the third, recorded once and run again and again
//
//   batch, replay   Brontes
//   raw             a descriptor set per dispatch, allocated and written when the commands are recorded
//   raw-lean        one descriptor set for all, and offsets in push constants: what only a special case can do
#include "raw/vulkan.hpp"
#include "suites.hpp"
#include "support.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brontes::bench {
namespace {

constexpr std::uint32_t tiny = 64;
// Ranges of a buffer that are bound begin at multiples of this many floats: 256 bytes, the most a device may ask for.
constexpr std::size_t range = 64;

struct Work {
  std::size_t ops;
  bool chained;

  // What op i adds; no two independent ones are the same.
  float amount(std::size_t i) const { return chained ? 1.0f : static_cast<float>(i); }
  // What the last result is more than x.
  float total() const { return chained ? static_cast<float>(ops) : amount(ops - 1); }
};

std::vector<float> expected(const std::vector<float>& x, const Work& work) {
  std::vector<float> y = x;
  for (float& v : y) v += work.total();
  return y;
}

Case described(const Work& work, Case c) {
  c.items = static_cast<double>(work.ops);
  c.item = "op";
  return c;
}

struct Ours {
  const Device& device;
  std::vector<float> host;
  Buffer x;
};

Tensor record(const Ours& ours, const Work& work, Batch& batch) {
  const Tensor x = batch.import_buffer(ours.x);
  Tensor y = x;
  for (std::size_t i = 0; i < work.ops; ++i) y = batch.offset(work.chained ? y : x, work.amount(i));
  return y;
}

std::shared_ptr<Ours> ours_on(const Device& device) {
  std::vector<float> host = noise(tiny, 3);
  Buffer x = resident(device, host);
  return std::make_shared<Ours>(Ours{device, std::move(host), std::move(x)});
}

Case batch(const Environment& environment, const Work& work) {
  auto ours = ours_on(environment.device);
  Case c;
  c.run = [ours, work] {
    Batch recorded(ours->device);
    record(*ours, work, recorded);
    must(recorded.execute());
  };
  c.check = [ours, work] {
    Batch recorded(ours->device);
    const Tensor y = record(*ours, work, recorded);
    must(recorded.execute());
    return compare(must(recorded.read(y)), expected(ours->host, work), 1e-3);
  };
  c.dump = [ours, work] { return dump_of(ours->device, [&](Batch& recorded) { record(*ours, work, recorded); }); };
  return described(work, std::move(c));
}

Case replay(const Environment& environment, const Work& work) {
  auto ours = ours_on(environment.device);
  Batch recorded(ours->device);
  const Tensor y = record(*ours, work, recorded);
  auto program = std::make_shared<Program>(must(recorded.compile()));
  Case c;
  c.run = [program] { must(program->run()); };
  c.check = [ours, program, work, y] {
    must(program->run());
    return compare(must(program->read(y)), expected(ours->host, work), 1e-3);
  };
  c.dump = [program] { return program->dump(); };
  return described(work, std::move(c));
}

struct ByHand {
  raw::Vulkan vulkan;
  std::vector<float> host = noise(tiny, 3);
  raw::Vulkan::Buffer x, y;
  VkDescriptorSet all = VK_NULL_HANDLE;

  ByHand(std::uint32_t index, const Work& work)
      : vulkan(index), x(vulkan.buffer(tiny)), y(vulkan.buffer(range * work.ops)) {
    for (std::size_t i = 0; i < tiny; ++i) x.data[i] = host[i];
  }

  const float* result(const Work& work) const { return y.data + range * (work.ops - 1); }
};

// A descriptor set per dispatch: code that knows nothing of what it will be asked.
void record_sets(ByHand& hand, const Work& work, bool once) {
  raw::Vulkan& vulkan = hand.vulkan;
  vulkan.reset_sets();
  vulkan.begin(once);
  vulkan.bind_pipeline();
  for (std::size_t i = 0; i < work.ops; ++i) {
    const bool first = i == 0 || !work.chained;
    if (!first) vulkan.barrier();
    vulkan.bind(vulkan.set(first ? hand.x : hand.y, hand.y, range * i, tiny));
    const auto from = static_cast<std::uint32_t>(first ? 0 : range * (i - 1));
    vulkan.dispatch({tiny, from, 0, work.amount(i)});
  }
  vulkan.barrier_to_host();
  vulkan.end();
}

// One set, made once.
void record_lean(ByHand& hand, const Work& work, bool once) {
  raw::Vulkan& vulkan = hand.vulkan;
  if (hand.all == VK_NULL_HANDLE) hand.all = vulkan.set(hand.x, hand.y);
  vulkan.begin(once);
  vulkan.bind_pipeline();
  vulkan.bind(hand.all);
  for (std::size_t i = 0; i < work.ops; ++i) {
    vulkan.dispatch({tiny, 0, static_cast<std::uint32_t>(range * i), work.amount(i)});
  }
  vulkan.barrier_to_host();
  vulkan.end();
}

using RecordByHand = void (*)(ByHand& hand, const Work& work, bool once);

Case by_hand(const Environment& environment, const Work& work, RecordByHand record_commands, bool again) {
  auto hand = std::make_shared<ByHand>(environment.device.info().index, work);
  if (again) record_commands(*hand, work, false);
  Case c;
  c.run = [hand, work, record_commands, again] {
    if (!again) record_commands(*hand, work, true);
    hand->vulkan.submit_and_wait();
  };
  c.check = [hand, work, run = c.run] {
    run();
    return compare({hand->result(work), tiny}, expected(hand->host, work), 1e-3);
  };
  c.counted = false;  // on a device of its own
  c = described(work, std::move(c));
  // Nothing but dispatches.
  if (again && !work.chained) c.item = "dispatch";
  return c;
}

}  // namespace

Suite raw_suite() {
  // Promised: a small op and a replay within 1.2 times the time of raw Vulkan, and many ops no slower than it.
  constexpr double nearly = 1 / 1.2;
  const Work one{1, false}, chain{3, true}, many{1000, false};
  Suite suite{"raw", {}};
  suite.groups.push_back({"raw/one-op/64",
                          {"batch", "raw"},
                          {{"batch", "raw", nearly}},
                          true,
                          [=](const Environment& e) -> std::vector<Case> {
                            return {batch(e, one), by_hand(e, one, record_sets, false)};
                          }});
  suite.groups.push_back(
      {"raw/chain-3/64", {"batch", "raw"}, {{"batch", "raw"}}, true, [=](const Environment& e) -> std::vector<Case> {
         return {batch(e, chain), by_hand(e, chain, record_sets, false)};
       }});
  suite.groups.push_back(
      {"raw/tiny-ops/1000",
       {"batch", "raw", "raw-lean"},
       {{"batch", "raw", 1}, {"batch", "raw-lean"}},
       true,
       [=](const Environment& e) -> std::vector<Case> {
         return {batch(e, many), by_hand(e, many, record_sets, false), by_hand(e, many, record_lean, false)};
       }});
  for (const Work& work : {one, many}) {
    suite.groups.push_back(
        {"raw/replay-" + std::to_string(work.ops) + "/64",
         {"replay", "raw", "raw-lean"},
         {{"replay", "raw", nearly}, {"replay", "raw-lean"}},
         true,
         [=](const Environment& e) -> std::vector<Case> {
           return {replay(e, work), by_hand(e, work, record_sets, true), by_hand(e, work, record_lean, true)};
         }});
  }
  return suite;
}

}  // namespace brontes::bench
