#version 450
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;
layout(constant_id = 0) const uint a = 0;
layout(constant_id = 1) const uint b = 0;
layout(constant_id = 2) const bool c = false;

layout(set = 0, binding = 0, std430) buffer values_view { uint values[]; };

#include "control_flow.glsl"

void main() { run(); }
