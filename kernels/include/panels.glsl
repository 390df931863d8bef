// How pack.comp leaves operands for panel.comp; `params` must have k.
#ifndef BRONTES_PANELS_GLSL
#define BRONTES_PANELS_GLSL

// vec4s of k.
uint matmul_fours() { return (params.k + 3u) / 4u; }

#endif
