// What debuggers are shown of Brontes on a host's device.
#include "host.hpp"
#include "shim.hpp"

#include <algorithm>

namespace brontes::test {
namespace {

bool has(const std::vector<std::string>& all, const std::string& text) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

bool begins_with(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

}  // namespace

TEST_CASE_METHOD(DeviceTest, "each dispatch is labelled with the ops it runs, on adopted devices too",
                 "[vulkan][names]") {
  Host host;
  host.external.get_instance_proc_addr = shim::get_instance_proc_addr(host.external.get_instance_proc_addr);
  const Device device = vulkan::adopt(host.external, checked_options()).value();
  shim::forget();
  Batch batch(device);
  const Tensor x = batch.upload(std::vector<float>(4 * 8, 1.0f), {4, 8});
  const Tensor w = batch.upload(std::vector<float>(16 * 8, 1.0f), {16, 8});
  const Tensor b = batch.upload(std::vector<float>(16, 1.0f));
  const Tensor y = batch.gelu(batch.linear(x, w, b));
  (void)batch.neg(batch.sum(y));
  const Result<std::string> dump = batch.dump();
  REQUIRE_OK(batch.execute());
  const shim::Seen seen = shim::seen();
  INFO(dump.value());
  CHECK(seen.labels.size() == batch.stats().dispatches);
  CHECK(seen.ended == seen.labels.size());
  bool fused = false;
  for (const std::string& label : seen.labels) {
    INFO(label);
    fused |= begins_with(label, "matmul+add+gelu %");
    // What the dump calls it.
    CHECK(contains(dump.value(), " " + label.substr(0, label.find(' ')) + " "));
  }
  CHECK(fused);
  CHECK(has(seen.names, "brontes arena"));
}

TEST_CASE_METHOD(DeviceTest, "buffers and programs have the names that they are given", "[vulkan][names]") {
  Host host;
  host.external.get_instance_proc_addr = shim::get_instance_proc_addr(host.external.get_instance_proc_addr);
  const Device device = vulkan::adopt(host.external, checked_options()).value();
  const Buffer buffer = Buffer::create(device, {64}).value();
  Batch batch(device);
  const Tensor y = batch.neg(batch.upload(counting(64)));
  batch.store(y, buffer);
  Program program = batch.compile().value();
  shim::forget();
  vulkan::set_name(buffer, "weights of layer 3");
  vulkan::set_name(program, "denoise");
  CHECK(has(shim::seen().names, "weights of layer 3"));
  CHECK(has(shim::seen().names, "denoise"));
  CHECK(has(shim::seen().names, "denoise arena"));
  HostVulkan own(host.handles());
  const VkCommandBuffer commands = own.begin();
  shim::forget();
  REQUIRE_OK(vulkan::record(program, commands));
  const shim::Seen seen = shim::seen();
  REQUIRE(seen.labels.size() >= 2);
  CHECK(seen.labels[0] == "denoise");
  CHECK(begins_with(seen.labels[1], "neg"));
  CHECK(seen.ended == seen.labels.size());
  own.end(commands);
}

TEST_CASE_METHOD(DeviceTest, "without VK_EXT_debug_utils there are neither names nor labels", "[vulkan][names]") {
  HostOptions options;
  options.validation = false;
  options.debug_utils = false;
  Host host(options);
  host.external.get_instance_proc_addr = shim::get_instance_proc_addr(host.external.get_instance_proc_addr);
  const Device device = vulkan::adopt(host.external, checked_options()).value();
  shim::forget();
  const Buffer buffer = Buffer::create(device, {64}).value();
  vulkan::set_name(buffer, "nobody sees it");
  check_device_works(device);
  CHECK(shim::seen().labels.empty());
  CHECK(shim::seen().names.empty());
}

}  // namespace brontes::test
