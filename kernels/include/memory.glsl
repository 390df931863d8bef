// The only way kernels reach memory. A kernel declares its slots
//
//   BRONTES_INPUT(binding, name)    read only
//   BRONTES_OUTPUT(binding, name)   write only
//   BRONTES_INOUT(binding, name)    both
//
// and uses load1(name, i), load4(name, i4), store1(name, i, value), store4(name, i4, value), where i
// counts floats and i4 counts vec4s. Nothing else about a slot is known to a kernel, so that another
// way to reach memory is another branch of this file and a -D define.
//
// Inputs are `restrict`. An output may still share memory with an input if the same invocation reads
// every element before it writes it and no other invocation touches that element.
#ifndef BRONTES_MEMORY_GLSL
#define BRONTES_MEMORY_GLSL

// Storage buffers, each slot seen both as floats and as vec4s. kernelgen takes the slot's name from
// the block names, and its access from the qualifiers.
#define BRONTES_SLOT(slot, name, qualifiers)                                                              \
  layout(set = 0, binding = slot, std430) qualifiers buffer name##_scalars_view { float name##_scalars[]; }; \
  layout(set = 0, binding = slot, std430) qualifiers buffer name##_vectors_view { vec4 name##_vectors[]; };

#define BRONTES_INPUT(slot, name) BRONTES_SLOT(slot, name, restrict readonly)
#define BRONTES_OUTPUT(slot, name) BRONTES_SLOT(slot, name, writeonly)
#define BRONTES_INOUT(slot, name) BRONTES_SLOT(slot, name, )

#define load1(name, i) (name##_scalars[i])
#define load4(name, i4) (name##_vectors[i4])
#define store1(name, i, value) name##_scalars[i] = (value)
#define store4(name, i4, value) name##_vectors[i4] = (value)

#endif
