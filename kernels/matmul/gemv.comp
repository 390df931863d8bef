// One to eight rows, on devices without subgroup arithmetic.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "matmul/gemv.glsl"
