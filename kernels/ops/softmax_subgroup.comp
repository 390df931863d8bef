// For devices with subgroup arithmetic.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BRONTES_SUBGROUP
#include "ops/softmax.glsl"
