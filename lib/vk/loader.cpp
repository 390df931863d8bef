#include "vk/loader.hpp"

#include "util/environment.hpp"
#include "vk/loader_lock.hpp"
#include "vk/result.hpp"

#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#if defined(_WIN32)
#  define WIN32_LEAN_AND_MEAN
#  include <windows.h>
#else
#  include <dlfcn.h>
#endif

namespace brontes::vk {
namespace {

#if defined(_WIN32)
constexpr const char* library_names[] = {"vulkan-1.dll"};
void* open_library(const char* name) { return reinterpret_cast<void*>(LoadLibraryA(name)); }
void close_library(void* library) { FreeLibrary(static_cast<HMODULE>(library)); }
void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}
#else
#  if defined(__APPLE__)
constexpr const char* library_names[] = {"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"};
#  else
constexpr const char* library_names[] = {"libvulkan.so.1", "libvulkan.so"};
#  endif
void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void close_library(void* library) { dlclose(library); }
void* find_symbol(void* library, const char* name) { return dlsym(library, name); }
#endif

template <class Function>
void load(PFN_vkGetInstanceProcAddr get_proc, VkInstance instance, const char* name, Function& function) {
  function = reinterpret_cast<Function>(get_proc(instance, name));
}

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

bool validation_wanted(Toggle toggle) {
  if (toggle != Toggle::automatic) return toggle == Toggle::on;
  if (const char* value = util::environment("BRONTES_VALIDATION"); value != nullptr && *value != '\0') {
    return std::strcmp(value, "0") != 0;
  }
  return BRONTES_VALIDATION_DEFAULT != 0;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_debug_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                VkDebugUtilsMessageTypeFlagsEXT,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  const auto level = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0     ? Severity::error
                     : (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT) != 0 ? Severity::warning
                                                                                         : Severity::info;
  const auto& callback = *static_cast<const MessageCallback*>(user);
  try {
    callback(level, data->pMessage != nullptr ? data->pMessage : "");
  } catch (const std::bad_alloc&) {
    // No memory to say it with, and the layer's frames must not be unwound.
  }
  return VK_FALSE;
}

void print_message(Severity severity, const std::string& text) {
  std::fprintf(stderr, "brontes: %s: %s\n", severity == Severity::error ? "error" : "warning", text.c_str());
}

}  // namespace

bool has_extension(const std::vector<VkExtensionProperties>& all, const char* name) {
  for (const auto& e : all) {
    if (std::strcmp(e.extensionName, name) == 0) return true;
  }
  return false;
}

Result<std::shared_ptr<Loader>> Loader::open() {
  std::shared_ptr<Loader> loader(new Loader());
  std::string tried;
  auto attempt = [&](const char* name) {
    if (loader->library_ != nullptr) return;
    tried += (tried.empty() ? "" : ", ") + std::string(name);
    loader->library_ = open_library(name);
  };
  if (const char* name = util::environment("BRONTES_VULKAN_LIBRARY"); name != nullptr && *name != '\0') {
    attempt(name);
  } else {
    for (const char* each : library_names) attempt(each);
  }
  if (loader->library_ == nullptr) {
    return Error(Errc::no_loader, "the Vulkan loader library is not installed or cannot be opened (tried " + tried +
                                      "); on Debian it is in the package libvulkan1");
  }
  loader->get_instance_proc_addr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(find_symbol(loader->library_, "vkGetInstanceProcAddr"));
  if (loader->get_instance_proc_addr == nullptr) {
    return Error(Errc::no_loader, tried + " is not a Vulkan loader: it has no vkGetInstanceProcAddr");
  }
#define BRONTES_LOAD(function)                                                            \
  load(loader->get_instance_proc_addr, nullptr, #function, loader->table.function);       \
  if (loader->table.function == nullptr) {                                                \
    return Error(Errc::no_loader, tried + " has no " #function ", which Vulkan 1.1 has"); \
  }
  BRONTES_GLOBAL_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
  return loader;
}

Loader::~Loader() {
  if (library_ != nullptr) close_library(library_);
}

Result<std::shared_ptr<Instance>> Instance::create(const DeviceOptions& options) {
  auto loader = Loader::open();
  if (!loader) return loader.error();
  const GlobalTable& global = (*loader)->table;

  std::shared_ptr<Instance> self(new Instance());
  self->loader_ = *loader;
  self->get_instance_proc_addr = (*loader)->get_instance_proc_addr;
  self->on_message_ = options.on_message;
  self->notes_ = static_cast<bool>(options.on_message);

  std::vector<const char*> layers;
  std::vector<const char*> extensions;
  VkInstanceCreateInfo create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};

  auto available = enumerate<VkExtensionProperties>([&](std::uint32_t* count, VkExtensionProperties* items) {
    return global.vkEnumerateInstanceExtensionProperties(nullptr, count, items);
  });
#if defined(VK_KHR_portability_enumeration)
  if (has_extension(available, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    create.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
#endif

  bool validation = validation_wanted(options.validation);
  if (validation) {
    const auto installed = enumerate<VkLayerProperties>([&](std::uint32_t* count, VkLayerProperties* items) {
      return global.vkEnumerateInstanceLayerProperties(count, items);
    });
    bool found = false;
    for (const auto& layer : installed) found |= std::strcmp(layer.layerName, validation_layer) == 0;
    if (!found) {
      const std::string text = std::string("the validation layer ") + validation_layer +
                               " is not installed; on Debian it is in the package vulkan-validationlayers";
      if (options.validation == Toggle::on) return Error(Errc::unsupported, text);
      self->report(Severity::info, text);
      validation = false;
    }
  }
  const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enables;
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  if (validation) {
    if (!self->on_message_) self->on_message_ = print_message;
    layers.push_back(validation_layer);
    const auto of_layer = enumerate<VkExtensionProperties>([&](std::uint32_t* count, VkExtensionProperties* items) {
      return global.vkEnumerateInstanceExtensionProperties(validation_layer, count, items);
    });
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = on_debug_message;
    messenger.pUserData = &self->on_message_;
    features.pNext = &messenger;
    create.pNext = &messenger;
    if (has_extension(of_layer, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
      extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
      create.pNext = &features;
    }
    self->debug_utils = has_extension(of_layer, VK_EXT_DEBUG_UTILS_EXTENSION_NAME) ||
                        has_extension(available, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    if (self->debug_utils) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pEngineName = "brontes";
  application.apiVersion = VK_API_VERSION_1_2;
  create.pApplicationInfo = &application;
  create.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  create.ppEnabledLayerNames = layers.data();
  create.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  VkResult result = VK_SUCCESS;
  {
    const LoaderChange lock(loader_mutex());
    result = global.vkCreateInstance(&create, nullptr, &self->handle);
  }
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return Error(Errc::no_driver,
                 "the Vulkan loader found no driver; on Debian a CPU driver is in the package mesa-vulkan-drivers",
                 result);
  }
  if (Error e = check(result, "vkCreateInstance")) return e;
  self->owned_ = true;
  if (Error e = self->load_table()) return e;
  if (validation && self->debug_utils && self->table.vkCreateDebugUtilsMessengerEXT != nullptr &&
      self->table.vkDestroyDebugUtilsMessengerEXT != nullptr) {
    const VkResult made =
        self->table.vkCreateDebugUtilsMessengerEXT(self->handle, &messenger, nullptr, &self->messenger_);
    if (Error e = check(made, "vkCreateDebugUtilsMessengerEXT")) return e;
  }
  return self;
}

Result<std::shared_ptr<Instance>> Instance::adopt(PFN_vkGetInstanceProcAddr get_proc, VkInstance instance,
                                                  const DeviceOptions& options) {
  std::shared_ptr<Instance> self(new Instance());
  self->on_message_ = options.on_message;
  self->notes_ = static_cast<bool>(options.on_message);
  self->get_instance_proc_addr = get_proc;
  self->handle = instance;
  // Functions of an extension that the instance does not have are null.
  self->debug_utils = true;
  if (get_proc(instance, "vkGetPhysicalDeviceFeatures2") == nullptr) {
    return Error(Errc::unsupported,
                 "adopt: the VkInstance was created for Vulkan 1.0 (VkApplicationInfo::apiVersion), and 1.2 is needed");
  }
  if (Error e = self->load_table()) return e;
  return self;
}

Error Instance::load_table() {
  // First of all, so that the instance does not outlive a failure below.
  load(get_instance_proc_addr, handle, "vkDestroyInstance", table.vkDestroyInstance);
#define BRONTES_LOAD(function)                                     \
  load(get_instance_proc_addr, handle, #function, table.function); \
  if (table.function == nullptr) return Error(Errc::unsupported, "the Vulkan loader has no " #function);
  BRONTES_INSTANCE_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
#define BRONTES_LOAD(function) load(get_instance_proc_addr, handle, #function, table.function);
  if (debug_utils) {
    BRONTES_INSTANCE_EXTENSION_FUNCTIONS(BRONTES_LOAD)
  }
  // Takes an extension of the device, and none of the instance.
  BRONTES_LOAD(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#undef BRONTES_LOAD
  return {};
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE && table.vkDestroyDebugUtilsMessengerEXT != nullptr)
    table.vkDestroyDebugUtilsMessengerEXT(handle, messenger_, nullptr);
  if (!owned_ || handle == VK_NULL_HANDLE || table.vkDestroyInstance == nullptr) return;
  const LoaderChange lock(loader_mutex());
  table.vkDestroyInstance(handle, nullptr);
}

void Instance::abandon() noexcept {
  owned_ = false;
  messenger_ = VK_NULL_HANDLE;
  if (loader_) loader_->abandon();
}

void Instance::report(Severity severity, const std::string& text) const {
  if (notes_) on_message_(severity, "brontes: " + text);
}

}  // namespace brontes::vk
