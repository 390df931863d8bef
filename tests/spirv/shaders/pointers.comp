// Buffers by address, structures that point to themselves, and the Vulkan memory model.
#version 460
#pragma use_vulkan_memory_model
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 8) in;
layout(constant_id = 0) const uint mode = 1;
layout(constant_id = 1) const bool follow = true;
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Node { Node next; uint value; uint list[4]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Unused { uint value; };
layout(push_constant) uniform Push { Node first; Unused other; };
layout(binding = 0) coherent buffer Shared { uint total; };

uint walk(Node node, uint steps) {
  uint sum = 0u;
  for (uint i = 0u; i < steps; ++i) {
    if (mode == 2u) return sum;
    sum += node.value + node.list[i & 3u];
    if (!follow) break;
    node = node.next;
  }
  return sum;
}

void main() {
  uint sum = walk(first, 3u) + walk(follow ? first.next : first, mode);
  atomicAdd(total, sum, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
  first[1].value = sum;
  if (mode > 7u) other.value = 1u;
}
