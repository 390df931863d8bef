// The Vulkan loader library and an instance on it.
#pragma once

#include "vk/table.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace brontes::vk {

/// Fills `items` with what one of Vulkan's enumerating functions lists, where `call(count, items)` is a call of it.
template <class Item, class Enumerate>
VkResult enumerate(std::vector<Item>& items, Enumerate call) {
  VkResult result = VK_SUCCESS;
  // There may be more than a moment ago, but hardly several times in a row: then some have to do.
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::uint32_t count = 0;
    result = call(&count, nullptr);
    items.assign(result < 0 ? 0 : count, Item{});
    if (result < 0 || count == 0) return result;
    result = call(&count, items.data());
    items.resize(result < 0 ? 0 : count);
    if (result != VK_INCOMPLETE) return result;
  }
  return result;
}

/// The same, where nothing is as good as a failure.
template <class Item, class Enumerate>
std::vector<Item> enumerate(Enumerate call) {
  std::vector<Item> items;
  enumerate(items, call);
  return items;
}

bool has_extension(const std::vector<VkExtensionProperties>& all, const char* name);

/// libvulkan, opened at run time. BRONTES_VULKAN_LIBRARY names another file to open instead.
class Loader {
 public:
  static Result<std::shared_ptr<Loader>> open();
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  GlobalTable table;

  /// The library stays loaded for good.
  void abandon() noexcept { library_ = nullptr; }

 private:
  Loader() = default;
  void* library_ = nullptr;
};

/// A VkInstance, of our own or somebody else's.
class Instance {
 public:
  /// Created with the validation layer when `validation` says so; see DeviceOptions.
  static Result<std::shared_ptr<Instance>> create(const DeviceOptions& options);
  static Result<std::shared_ptr<Instance>> adopt(PFN_vkGetInstanceProcAddr get_proc, VkInstance instance,
                                                 const DeviceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  InstanceTable table;
  bool debug_utils = false;

  /// From now on nothing is destroyed: what the driver does with it is not known.
  void abandon() noexcept;

  /// Hands a note of the library to the user.
  void report(Severity severity, const std::string& text) const;

 private:
  Instance() = default;
  Error load_table();

  std::shared_ptr<Loader> loader_;  // null for an adopted instance
  bool owned_ = false;
  MessageCallback on_message_;
  bool notes_ = false;  // the user gave a callback; without one only validation prints
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace brontes::vk
