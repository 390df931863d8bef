// One triangle that covers everything.
#version 450
void main() { gl_Position = vec4(vec2(gl_VertexIndex == 1 ? 3 : -1, gl_VertexIndex == 2 ? 3 : -1), 0, 1); }
