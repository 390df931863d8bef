#include "commands.hpp"
#include "json.hpp"
#include "on_batch.hpp"
#include "terminal.hpp"

#include <brontes/brontes.hpp>
#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace tool {
namespace {

// Features and extensions that the library uses on this device, by Vulkan's names: what recommended_features() turns
// on.
struct Used {
  std::vector<std::string> features, extensions;
};

Used used_by(const brontes::Device& device) {
  const brontes::vulkan::Handles handles = brontes::vulkan::handles(device);
  const auto wanted =
      brontes::vulkan::recommended_features(handles.get_instance_proc_addr, handles.instance, handles.physical_device);
  Used used;
  if (!wanted) return used;
  auto add = [&](VkBool32 on, const char* name) {
    if (on != VK_FALSE) used.features.emplace_back(name);
  };
  add(wanted->vulkan12.timelineSemaphore, "timelineSemaphore");
  add(wanted->vulkan12.bufferDeviceAddress, "bufferDeviceAddress");
  add(wanted->vulkan10.shaderInt64, "shaderInt64");
  add(wanted->subgroup_size.subgroupSizeControl, "subgroupSizeControl");
  add(wanted->subgroup_size.computeFullSubgroups, "computeFullSubgroups");
  add(wanted->cooperative_matrix.cooperativeMatrix, "cooperativeMatrix");
  add(wanted->vulkan12.shaderFloat16, "shaderFloat16");
  add(wanted->vulkan12.vulkanMemoryModel, "vulkanMemoryModel");
  for (const char* name : wanted->extensions) used.extensions.emplace_back(name);
  return used;
}

void print_names(const char* title, const std::vector<std::string>& names) {
  std::printf("%s\n", title);
  for (const std::string& name : names) std::printf("  %s\n", name.c_str());
  if (names.empty()) std::printf("  none\n");
}

void put_names(Json& json, const char* key, const std::vector<std::string>& names) {
  json.begin(key, '[');
  for (const std::string& name : names) json.put(nullptr, name);
  json.end(']');
}

void print(const brontes::Device& device) {
  const brontes::DeviceInfo& d = device.info();
  const brontes::PipelineCacheStatus cache = device.pipeline_cache();
  const brontes::TuningStatus tuning = device.tuning();
  const brontes::DeviceMemory memory = device.memory();
  auto text = [](std::uint64_t n) { return std::to_string(n); };
  std::printf("Brontes %s\n", brontes::version());
  print_device(d);
  std::printf("\nLimits\n");
  std::printf("  workgroups of a dispatch  %s x %s x %s\n", text(d.max_group_count[0]).c_str(),
              text(d.max_group_count[1]).c_str(), text(d.max_group_count[2]).c_str());
  std::printf("  invocations of one        %s\n", text(d.max_group_invocations).c_str());
  std::printf("  its shared memory         %s bytes\n", text(d.max_shared_bytes).c_str());
  std::printf("  subgroup                  %s invocations\n", text(d.subgroup_size).c_str());
  std::printf("  largest tensor            %s bytes\n", text(d.max_storage_range).c_str());
  std::printf("Memory\n");
  std::printf("  reached by kernels        as %s\n", brontes::to_string(d.access));
  std::printf("  reached by the host       %s\n", d.mapped_memory ? "mapped: no copies" : "through staging copies");
  std::printf("  heap                      %s bytes\n", text(memory.heap_bytes).c_str());
  const Used used = used_by(device);
  print_names("Features used", used.features);
  print_names("Extensions used", used.extensions);
  std::printf("Pipeline cache\n");
  std::printf("  %s%s%s\n", brontes::to_string(cache.state), cache.path.empty() ? "" : ": ", cache.path.c_str());
  if (!cache.note.empty()) std::printf("  %s\n", cache.note.c_str());
  std::printf("Tuning\n");
  std::printf("  %s%s%s\n", brontes::to_string(tuning.state), tuning.path.empty() ? "" : ": ", tuning.path.c_str());
  if (!tuning.note.empty()) std::printf("  %s\n", tuning.note.c_str());
  std::printf("  %s products measured, %s of them with a faster kernel than the default\n", text(tuning.shapes).c_str(),
              text(tuning.changed).c_str());
}

void write_json(const brontes::Device& device) {
  const brontes::DeviceInfo& d = device.info();
  const brontes::PipelineCacheStatus cache = device.pipeline_cache();
  const brontes::TuningStatus tuning = device.tuning();
  Json json(std::cout);
  json.begin(nullptr, '{');
  json.put("version", brontes::version());
  json.begin("device", '{');
  put_device(json, d);
  json.put("subgroup_size", d.subgroup_size);
  json.put("max_group_invocations", d.max_group_invocations);
  json.put("max_shared_bytes", d.max_shared_bytes);
  json.begin("max_group_count", '[');
  for (std::uint32_t count : d.max_group_count) json.put(nullptr, count);
  json.end(']');
  json.put("max_storage_range", d.max_storage_range);
  json.put("mapped_memory", d.mapped_memory);
  json.put("access", brontes::to_string(d.access));
  json.put("heap_bytes", device.memory().heap_bytes);
  json.end('}');
  const Used used = used_by(device);
  put_names(json, "features", used.features);
  put_names(json, "extensions", used.extensions);
  json.begin("pipeline_cache", '{');
  json.put("state", brontes::to_string(cache.state));
  json.put("path", cache.path);
  json.put("note", cache.note);
  json.put("bytes_loaded", cache.bytes_loaded);
  json.end('}');
  json.begin("tuning", '{');
  json.put("state", brontes::to_string(tuning.state));
  json.put("path", tuning.path);
  json.put("note", tuning.note);
  json.put("shapes", std::uint64_t{tuning.shapes});
  json.put("changed", std::uint64_t{tuning.changed});
  json.end('}');
  json.end('}');
  std::cout << '\n';
}

}  // namespace

const char* const info_help =
    "Usage: brontes info [--device WHICH] [--json]\n"
    "\n"
    "Says what the library makes of a device: its limits, how its memory is reached, which features and extensions\n"
    "are used, and whether a pipeline cache and measurements of `brontes tune` were found.\n"
    "\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n"
    "  --json          the same as JSON\n";

int info(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {"--device"}, 0});
  if (!parsed.problem.empty()) return report_misuse("info", parsed.problem);
  const auto device = open_device(parsed);
  if (!device) return report(device.error());
  if (parsed.flag("--json")) {
    write_json(*device);
  } else {
    print(*device);
  }
  return success;
}

}  // namespace tool
