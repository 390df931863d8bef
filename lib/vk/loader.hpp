// The Vulkan loader library and an instance on it.
#pragma once

#include "vk/table.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>

#include <memory>

namespace brontes::vk {

/// libvulkan, opened at run time. BRONTES_VULKAN_LIBRARY names another file to open instead.
class Loader {
 public:
  static Result<std::shared_ptr<Loader>> open();
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  GlobalTable table;

 private:
  explicit Loader(void* library) : library_(library) {}
  void* library_;
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
