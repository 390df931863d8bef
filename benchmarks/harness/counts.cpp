#include "counts.hpp"

namespace brontes::bench {
namespace {

struct Snapshot {
  DeviceStats device;
  std::uint64_t host = 0;
};

// The one table of counts.
struct Counted {
  const char* name;
  const char* meaning;
  std::uint64_t (*in)(const Snapshot&);
};

const Counted table[] = {
    {"submits", "command buffers submitted", [](const Snapshot& s) { return s.device.submits; }},
    {"dispatches", "vkCmdDispatch", [](const Snapshot& s) { return s.device.runs.dispatches; }},
    {"barriers", "barriers between dependent dispatches", [](const Snapshot& s) { return s.device.runs.barriers; }},
    {"boundary_barriers", "barriers towards earlier work, transfers and the host",
     [](const Snapshot& s) { return s.device.runs.boundary_barriers; }},
    {"transfers_up", "uploads, however many tensors each has",
     [](const Snapshot& s) { return s.device.runs.transfers_up; }},
    {"transfers_down", "read-backs", [](const Snapshot& s) { return s.device.runs.transfers_down; }},
    {"bytes_up", "bytes of uploaded elements", [](const Snapshot& s) { return s.device.runs.bytes_up; }},
    {"bytes_down", "bytes of readable elements", [](const Snapshot& s) { return s.device.runs.bytes_down; }},
    {"copy_commands", "vkCmdCopyBuffer", [](const Snapshot& s) { return s.device.runs.copy_commands; }},
    {"pipelines_created", "pipelines created by a warm iteration",
     [](const Snapshot& s) { return s.device.pipelines_created; }},
    {"pipelines_used", "distinct pipelines of each run",
     [](const Snapshot& s) { return s.device.runs.pipelines_used; }},
    {"fused_programs", "those of them that run several elementwise ops",
     [](const Snapshot& s) { return s.device.runs.fused_programs; }},
    {"spirv_bytes", "SPIR-V of the pipelines used", [](const Snapshot& s) { return s.device.runs.spirv_bytes; }},
    {"device_allocations", "device memory blocks allocated", [](const Snapshot& s) { return s.device.allocations; }},
    {"arena_bytes", "device memory of uploads, results and temporaries",
     [](const Snapshot& s) { return s.device.runs.arena_bytes; }},
    {"arena_bytes_without_reuse", "the same if no temporaries shared memory",
     [](const Snapshot& s) { return s.device.runs.arena_bytes_without_reuse; }},
    {"host_allocations", "calls of operator new by the thread that runs the case",
     [](const Snapshot& s) { return s.host; }},
};

Snapshot take(const Device& device) {
  Snapshot snapshot;
  snapshot.device = device.stats();
  snapshot.host = host_allocations();
  return snapshot;
}

}  // namespace

Counts count(const Device& device, const std::function<void()>& run, int times) {
  Counts least;
  for (int i = 0; i < times; ++i) {
    const Snapshot before = take(device);
    run();
    const Snapshot after = take(device);
    Counts these;
    for (const Counted& counted : table) {
      const std::uint64_t earlier = counted.in(before);
      these[counted.name] = counted.in(after)-earlier;
    }
    add_least(least, these);
  }
  if (!host_allocations_known()) least.erase("host_allocations");
  return least;
}

const char* meaning_of(const std::string& name) {
  if (name == "host_instructions") return "instructions of the thread that runs the case, by valgrind";
  for (const Counted& counted : table) {
    if (name == counted.name) return counted.meaning;
  }
  return "";
}

}  // namespace brontes::bench
