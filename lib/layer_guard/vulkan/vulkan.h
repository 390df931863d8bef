// First on the include path of record/ and plan/, so that including Vulkan there does not compile,
// also where the Vulkan headers lie in a system directory.
#error "record/ and plan/ are Vulkan-free: see docs/architecture.md, the layer rule"
