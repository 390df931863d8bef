// The order of tiles for kernels in which a CPU core takes one after the other: down eight tiles, then on to the
// next column, so that eight tiles share what they read of B while it is in the cache.
#ifndef BRONTES_TILES_GLSL
#define BRONTES_TILES_GLSL

// Row and column of a tile, counted in tiles. Rows past the end for tiles past the last.
uvec2 tile_position(uint tile, uint tiles_m, uint tiles_n) {
  if (tile >= tiles_m * tiles_n) return uvec2(tiles_m, 0u);
  const uint height = 8u;
  uint band = tile / (height * tiles_n);
  uint rest = tile - band * height * tiles_n;
  uint rows = band * height < tiles_m ? min(height, tiles_m - band * height) : height;
  return uvec2(band * height + rest % rows, rest / rows);
}

#endif
