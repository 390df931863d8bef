// layer_norm and rms_norm of rows: (x - mean) / sqrt(variance + epsilon) and x / sqrt(mean square + epsilon), times the
// weight and plus the bias, where there are such.
//
// The mean is found in two steps, x - center being small against x where that matters: first a center, which is the mean
// as near as f32 has it, then the mean and the mean square of x - center.
//
// A row with NaN or infinity in it, or whose mean square is past the range of f32, is NaN.
#include "row.glsl"

// Mean square instead of variance.
layout(constant_id = 7) const uint rms = 0;
layout(constant_id = 8) const uint weighted = 0;
layout(constant_id = 9) const uint biased = 0;

BRONTES_INPUT(1, weight)
BRONTES_INPUT(6, bias)

// What makes a result of an element: (x - center - shift) * factor.
struct Norm {
  vec4 center;
  vec4 shift;
  vec4 factor;
};

vec4 centered(vec4 x, Norm norm) {
  if (rms != 0u) return x;
  precise vec4 result = (x - norm.center) - norm.shift;
  return result;
}

// From the sums of x - center and of its squares, over n elements.
void finish(inout Norm norm, vec4 sum, vec4 squares) {
  float n = float(params.n);
  vec4 variance = squares / n;
  norm.shift = vec4(0.0);
  if (rms == 0u) {
    norm.shift = sum / n;
    // NaN stays: what max() makes of it is not defined.
    variance -= norm.shift * norm.shift;
    variance = mix(variance, vec4(0.0), lessThan(variance, vec4(0.0)));
  }
  bvec4 bad = greaterThanEqual(floatBitsToUint(variance) & 0x7fffffffu, uvec4(0x7f800000u));
  norm.factor = mix(1.0 / sqrt(variance + params.epsilon), vec4(BRONTES_NAN), bad);
}

// The weight and the bias of the elements at `at`, in a row that begins at `row`.
vec4 result4(Line line, uint at, vec4 x, vec4 factor) {
  uint i = at - line.index * params.n;
  vec4 result = x * factor;
  if (weighted != 0u) result *= aligned != 0u ? load4(weight, i / 4u) : loadu4(weight, i, params.n);
  if (biased != 0u) result += aligned != 0u ? load4(bias, i / 4u) : loadu4(bias, i, params.n);
  return result;
}

void hold(Line line) {
  uint stride = row_stride();
  vec4 x[most_held];
  Norm norm;
  norm.center = vec4(0.0);
  norm.shift = vec4(0.0);
  vec4 sum = vec4(0.0);
  vec4 squares = vec4(0.0);
#define LOAD(i)                                                                    \
  if (i < held) {                                                                  \
    x[i] = value_or(line, i, line.at + i * stride, 0.0);                           \
    sum += x[i];                                                                   \
  }
#define SQUARE(i)                                                                  \
  if (i < held) {                                                                  \
    if (rms == 0u) {                                                               \
      x[i] = centered(x[i], norm);                                                 \
      vec4 d = row_inside(line, i, line.at + i * stride, x[i]);                    \
      sum += d;                                                                    \
      squares += d * d;                                                            \
    } else {                                                                       \
      squares += x[i] * x[i];                                                      \
    }                                                                              \
  }
#define PUT(i)                                                                     \
  if (i < held) {                                                                  \
    uint to = line.at + i * stride;                                                \
    BRONTES_PUT_HELD(line, i, result4(line, to, rms != 0u ? x[i] : x[i] - norm.shift, norm.factor)) \
  }
  BRONTES_FOR_HELD(LOAD)
  if (rms == 0u) norm.center = line_sum(sum) / float(params.n);
  sum = vec4(0.0);
  BRONTES_FOR_HELD(SQUARE)
  if (rms == 0u) sum = line_sum(sum);
  squares = line_sum(squares);
  finish(norm, sum, squares);
  BRONTES_FOR_HELD(PUT)
}

#define EIGHT(DO) ((DO(0u) + DO(1u)) + (DO(2u) + DO(3u))) + ((DO(4u) + DO(5u)) + (DO(6u) + DO(7u)))

vec4 sum_of(Line line) {
  uint stride = row_stride();
  vec4 sum = vec4(0.0);
  uint at = line.at;
  uint s = 0u;
#define NEXT(i) value4(line, at + i * stride, 0.0)
  for (; s + 8u <= line.steps; s += 8u) {
    sum += EIGHT(NEXT);
    at += 8u * stride;
  }
#undef NEXT
#define NEXT(i) value_or(line, s + i, at + i * stride, 0.0)
  for (; s < line.steps; s += 8u) {
    sum += EIGHT(NEXT);
    at += 8u * stride;
  }
#undef NEXT
  return line_sum(sum);
}

void squares_of(Line line, Norm norm, out vec4 sum, out vec4 squares) {
  uint stride = row_stride();
  vec4 all = vec4(0.0);
  vec4 all_squares = vec4(0.0);
  uint at = line.at;
  uint s = 0u;
  vec4 d[8];
#define ELEMENT(i) d[i]
#define SQUARE_OF(i) d[i] * d[i]
#define ADD_ALL(DO)                                                         \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)                           \
  if (rms == 0u) all += EIGHT(ELEMENT);                                     \
  all_squares += EIGHT(SQUARE_OF);                                          \
  at += 8u * stride;
#define WHOLE(i) d[i] = row_inside(line, s + i, at + i * stride, centered(value4(line, at + i * stride, 0.0), norm));
#define SOME(i) d[i] = row_inside(line, s + i, at + i * stride, centered(value_or(line, s + i, at + i * stride, 0.0), norm));
  for (; s + 8u <= line.steps; s += 8u) {
    ADD_ALL(WHOLE)
  }
  for (; s < line.steps; s += 8u) {
    ADD_ALL(SOME)
  }
  sum = rms == 0u ? line_sum(all) : vec4(0.0);
  squares = line_sum(all_squares);
}

// The sums of the whole row from those of its slices: [center, sum, squares], or [squares].
void gather(Line line, inout Norm norm, out vec4 sum, out vec4 squares) {
  uint end = end_slice(line);
  vec4 total = vec4(0.0);
  vec4 all_squares = vec4(0.0);
#define SIZE(s) float(min(params.slice, params.n - (s) * params.slice))
  // Four at a time; those past the end count nothing.
#define SHARE(i) (s + i * team < end ? SIZE(s + i * team) / float(params.n) * partial4(line, 0u, s + i * team) : vec4(0.0))
  if (rms == 0u) {
    for (uint s = first_slice(); s < end; s += 4u * team) total += (SHARE(0u) + SHARE(1u)) + (SHARE(2u) + SHARE(3u));
    norm.center = line_sum(total) * 0.25;  // every lane has all four alike
    total = vec4(0.0);
  }
#define SLICE(i)                                                              \
  if (s + i * team < end) {                                                   \
    if (rms == 0u) {                                                          \
      precise vec4 off = partial4(line, 0u, s + i * team) - norm.center;      \
      vec4 part = partial4(line, 1u, s + i * team);                           \
      vec4 moved = SIZE(s + i * team) * off;                                  \
      total += part + moved;                                                  \
      all_squares += partial4(line, 2u, s + i * team) + off * (2.0 * part + moved); \
    } else {                                                                  \
      all_squares += partial4(line, 0u, s + i * team);                        \
    }                                                                         \
  }
  for (uint s = first_slice(); s < end; s += 4u * team) {
    SLICE(0u)
    SLICE(1u)
    SLICE(2u)
    SLICE(3u)
  }
  sum = rms == 0u ? line_sum(total) * 0.25 : vec4(0.0);
  squares = line_sum(all_squares) * 0.25;
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  Line line = row_line(group);
  if (held != 0u) {
    hold(line);
    return;
  }
  Norm norm;
  norm.center = vec4(0.0);
  norm.shift = vec4(0.0);
  vec4 sum;
  vec4 squares;
  if (stage == stage_finish) {
    gather(line, norm, sum, squares);
  } else {
    if (rms == 0u) {
      uint first = line.slice * params.slice;
      float size = float(min(params.slice, params.n - min(first, params.n - 1u)));
      norm.center = sum_of(line) / size;
    }
    squares_of(line, norm, sum, squares);
  }
  if (stage == stage_partial) {
    if (rms == 0u) {
      put_partial(line, 0u, norm.center);
      put_partial(line, 1u, sum);
      put_partial(line, 2u, squares);
    } else {
      put_partial(line, 0u, squares);
    }
    return;
  }
  finish(norm, sum, squares);
#define RESULT(at) put4(line, at, result4(line, at, centered(value4(line, at, 0.0), norm), norm.factor));
  BRONTES_FOR_STEPS(line, RESULT)
}
