// Images, samplers and shared memory.
#version 460
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x_id = 90, local_size_y_id = 91) in;
layout(constant_id = 0) const uint mode = 1;
layout(constant_id = 1) const bool linear = false;
layout(constant_id = 80) const uint count = 2;
layout(binding = 0, rgba8) uniform image2D target;
layout(binding = 1) uniform sampler2D source[count];
layout(binding = 2, r32ui) uniform uimage2D counters;
layout(binding = 3) uniform texture2D plain;
layout(binding = 4) uniform sampler how;
layout(binding = 5) uniform samplerBuffer texels;
layout(binding = 6) uniform usampler2DArray layers;
shared vec4 row[count][4];

vec4 fetched(ivec2 at, uint which) {
  switch (which) {
    case 0: return texelFetch(source[0], at, 0);
    case 1: return textureLod(source[nonuniformEXT(which % count)], vec2(at), 1.0);
    case 2: return textureGather(source[0], vec2(at), 1);
    case 3: return textureLodOffset(sampler2D(plain, how), vec2(at), 0.0, ivec2(1, -1));
    case 4: return textureGrad(source[0], vec2(at), vec2(0.5), vec2(0.25)) + vec4(textureSize(source[0], 0), 0, 0);
    default: return texelFetch(texels, at.x) + vec4(texelFetch(layers, ivec3(at, 1), 0));
  }
}

void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy);
  row[gl_LocalInvocationIndex % count][mode & 3u] = fetched(at, mode);
  barrier();
  memoryBarrierShared();
  if (linear) imageStore(target, at, row[0][at.x & 3] * mat4(2.0));
  else imageStore(target, at, imageLoad(target, at.yx) + fetched(at, uint(at.x)));
  imageAtomicAdd(counters, at, mode + uint(imageSize(target).x));
}
