// What kernels cannot have, one thing per UNUSUAL_*, and what they can.
#version 450
#ifdef UNUSUAL_FLOAT64
#  extension GL_ARB_gpu_shader_fp64 : require
#endif
#ifdef UNUSUAL_LOCAL_SIZE
layout(local_size_x = 64, local_size_y_id = 7, local_size_z = 2) in;
#else
layout(local_size_x = 1) in;
#endif
#ifndef UNUSUAL_READ_ONLY
layout(binding = 0) writeonly buffer Out { float value[]; } result;
#endif

#ifdef UNUSUAL_UNIFORM_BUFFER
layout(binding = 1) uniform Settings { float x; } other;
#  define OTHER other.x
#endif
#ifdef UNUSUAL_STORAGE_IMAGE
layout(binding = 1, r32f) uniform image2D other;
#  define OTHER imageLoad(other, ivec2(0)).x
#endif
#ifdef UNUSUAL_SAMPLER
layout(binding = 1) uniform sampler2D other;
#  define OTHER textureLod(other, vec2(0), 0).x
#endif
#ifdef UNUSUAL_TEXEL_BUFFER
layout(binding = 1) uniform samplerBuffer other;
#  define OTHER texelFetch(other, 0).x
#endif
#ifdef UNUSUAL_STORAGE_TEXEL_BUFFER
layout(binding = 1, r32f) uniform imageBuffer other;
#  define OTHER imageLoad(other, 0).x
#endif
#ifdef UNUSUAL_SET
layout(set = 2, binding = 1) readonly buffer Other { float x[]; } other;
#  define OTHER other.x[0]
#endif
#ifdef UNUSUAL_ARRAY
layout(binding = 1) readonly buffer Other { float x[]; } other[3];
#  define OTHER other[1].x[0]
#endif
#ifdef UNUSUAL_BINDINGS
layout(binding = 1) readonly buffer B1 { float x; } b1;
layout(binding = 2) readonly buffer B2 { float x; } b2;
layout(binding = 3) readonly buffer B3 { float x; } b3;
layout(binding = 4) readonly buffer B4 { float x; } b4;
layout(binding = 5) readonly buffer B5 { float x; } b5;
layout(binding = 6) readonly buffer B6 { float x; } b6;
layout(binding = 7) readonly buffer B7 { float x; } b7;
layout(binding = 8) readonly buffer B8 { float x; } b8;
#  define OTHER (b1.x + b2.x + b3.x + b4.x + b5.x + b6.x + b7.x + b8.x)
#endif
#ifdef UNUSUAL_BINDING_NUMBER
layout(binding = 60000) readonly buffer Other { float x[]; } other;
#  define OTHER other.x[0]
#endif
#ifdef UNUSUAL_PUSH
layout(push_constant) uniform Params { mat4 m[2]; float x; } params;
#  define OTHER (params.x + params.m[1][0].x)
#endif
#ifdef UNUSUAL_SHARED
layout(constant_id = 3) const uint count = 4;
shared vec4 memory[16 * count];
#  define OTHER memory[0].x
#endif
#ifdef UNUSUAL_FLOAT64
#  define OTHER float(sqrt(double(gl_NumWorkGroups.x)))
#endif
#ifdef UNUSUAL_LOCAL_SIZE
#  define OTHER float(gl_WorkGroupSize.y)
#endif
#ifdef UNUSUAL_MATRIX_PUSH
layout(push_constant) uniform Params { float first; layout(row_major) mat3x2 m; uint last[3]; } params;
#  define OTHER (params.first + params.m[0].x + float(params.last[2]))
#endif
#ifdef UNUSUAL_READ_ONLY
layout(binding = 1) readonly buffer Other { float x[]; } other;
void main() {
  if (other.x[0] == 1.0) return;
}
#else
void main() { result.value[0] = OTHER; }
#endif
