// Compiles where glslang and SPIRV-Tools know cooperative matrices: kernels/meson.build asks.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require

layout(local_size_x = 32) in;
layout(constant_id = 0) const uint size = 16;
layout(set = 0, binding = 0, std430) buffer words_view { float words[]; };
shared f16vec4 tile[size * size / 4];

void main() {
  tile[gl_LocalInvocationIndex] = f16vec4(words[gl_LocalInvocationIndex]);
  barrier();
  coopmat<float16_t, gl_ScopeSubgroup, size, size, gl_MatrixUseA> a;
  coopmat<float16_t, gl_ScopeSubgroup, size, size, gl_MatrixUseB> b;
  coopMatLoad(a, tile, 0, size / 4, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(b, tile, 0, size / 4, gl_CooperativeMatrixLayoutColumnMajor);
  coopmat<float, gl_ScopeSubgroup, size, size, gl_MatrixUseAccumulator> c =
      coopmat<float, gl_ScopeSubgroup, size, size, gl_MatrixUseAccumulator>(0.0);
  c = coopMatMulAdd(a, b, c);
  coopMatStore(c, words, 0, size, gl_CooperativeMatrixLayoutRowMajor);
}
