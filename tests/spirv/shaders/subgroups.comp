// Subgroup operations, built-in functions with results through pointers, and prints.
#version 460
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_quad : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_EXT_debug_printf : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint mode = 0;
layout(binding = 0) buffer Values { float values[]; };

float reduced(float x, uint how) {
  if (how == 0u) return subgroupAdd(x);
  if (how == 1u) return subgroupClusteredMax(x, 4);
  if (how == 2u) return subgroupShuffleXor(x, 1u) + subgroupBroadcast(x, 3u);
  if (how == 3u) return subgroupQuadSwapHorizontal(x);
  return subgroupAll(x > 0.0) ? float(subgroupBallotBitCount(subgroupBallot(x > 1.0))) : x;
}

void main() {
  uint at = gl_GlobalInvocationID.x;
  float whole;
  int exponent;
  float x = modf(values[at], whole) + frexp(whole, exponent) + ldexp(1.0, exponent);
  if (mode == 9u) debugPrintfEXT("%f", x);
  uint high, low;
  umulExtended(at, mode, high, low);
  values[at] = reduced(x, mode) + reduced(x, 1u) + float(high + low);
  debugPrintfEXT("%u", mode);
}
