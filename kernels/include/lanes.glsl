// For kernels that give a subgroup work by its number of lanes. gl_SubgroupSize will not do: it is what a device says of
// itself, and compilers take it for a constant even where fewer lanes run.
#ifndef BRONTES_LANES_GLSL
#define BRONTES_LANES_GLSL

// Lanes of each subgroup, all of which run: pipelines require this size (vk/pipelines.cpp). 0 asks for nothing.
layout(constant_id = 44) const uint subgroup_lanes = 0;

#endif
