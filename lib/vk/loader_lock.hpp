// The Vulkan loader has lists of all instances and devices of the process, and some of its functions walk them while
// others change them, with no lock of their own or with different ones (Vulkan-Loader issues 200 and 2018; loaders from
// 2019 to 2026). vkCreateDevice beside vkDestroyDevice of quite another instance can crash, and so can
// vkSetDebugUtilsObjectNameEXT beside either. A lock of ours keeps the library's own calls apart. What other code of
// the process does with the loader meanwhile is out of its reach.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace brontes::vk {

/// Held exclusively by whoever creates or destroys an instance or a device, shared by whoever looks one up. Nobody
/// holds it in a freshly forked process. Callbacks of the user may run under it: these must not call the library.
///
/// Thread-safety: any thread.
std::shared_mutex& loader_mutex() noexcept;

/// The lists change.
using LoaderChange = std::unique_lock<std::shared_mutex>;
/// The lists are walked.
using LoaderLookup = std::shared_lock<std::shared_mutex>;

}  // namespace brontes::vk
