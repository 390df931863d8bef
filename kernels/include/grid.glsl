// Workgroups are numbered linearly over all three axes of the grid, because one axis holds only 65535
// on many devices. A folded grid may be larger than the work: a kernel first returns, all invocations
// of the workgroup together and before any barrier, when its number is past the work's group count.
#ifndef BRONTES_GRID_GLSL
#define BRONTES_GRID_GLSL

uint group_index() {
  return gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}

#endif
