// softmax and log_softmax: exp(x - r) / sum(exp(x - r)) and (x - r) - log(sum(exp(x - r))) along each line, where r is
// the largest element, or at most `slack` below it. No exponential overflows, and the sum is 1 or more.
//
// A line with NaN or +Inf in it, or of nothing but -Inf, is NaN.
#include "activations.glsl"
#include "row.glsl"

layout(constant_id = 7) const uint logarithm = 0;

// e^x for x up to 80; NaN gives NaN. Results below the smallest normal number are 0.
vec4 exp_up_to_80(vec4 x) {
  const vec4 least = vec4(-87.33654);
  bvec4 vanishes = lessThan(x, least);
  x = mix(x, least, vanishes);
  vec4 k = floor(x * 1.44269504088896341 + 0.5);
  // Exact only if evaluated as written.
  precise vec4 r = x - k * ln2_high;
  r = r - k * ln2_low;
  vec4 series = r * 0.0013813145256597872 + 0.008369418829638726;
  series = series * r + 0.04166845676949187;
  series = series * r + 0.16666514791500261;
  series = series * r + 0.4999999305083573;
  series = series * (r * r) + r + 1.0;
  return mix(series * intBitsToFloat((ivec4(k) + 127) << 23), vec4(0.0), vanishes);
}

vec4 shifted(vec4 x, vec4 reference) {
  precise vec4 result = x - reference;
  return result;
}
vec4 exp_of(vec4 x, vec4 reference) { return exp_up_to_80(shifted(x, reference)); }

// What exponentials are multiplied by, or what is subtracted from the shifted x.
vec4 ending(vec4 reference, vec4 sum) {
  vec4 result = logarithm != 0u ? safe_log(sum) : 1.0 / sum;
  bvec4 none = equal(sum, vec4(0.0));
  return mix(mix(result, vec4(BRONTES_NAN), none), vec4(BRONTES_NAN), is_inf(reference));
}

vec4 result4(vec4 x, vec4 reference, vec4 end) {
  if (logarithm != 0u) {
    precise vec4 result = shifted(x, reference) - end;
    return result;
  }
  return exp_of(x, reference) * end;
}

void hold(Line line) {
  uint stride = row_stride();
  vec4 x[most_held];
  vec4 reference = vec4(row_lowest);
  vec4 sum = vec4(0.0);
#define LOAD(i)                                                                    \
  if (i < held) {                                                                  \
    x[i] = value_or(line, i, line.at + i * stride, -BRONTES_INFINITY);             \
    reference = max(reference, x[i]);                                              \
  }
#define SUM(i)                                                                     \
  if (i < held) {                                                                  \
    vec4 e = exp_of(x[i], reference);                                              \
    sum += e;                                                                      \
    x[i] = logarithm != 0u ? shifted(x[i], reference) : e;                         \
  }
#define PUT(i)                                                                     \
  if (i < held) {                                                                  \
    precise vec4 y = logarithm != 0u ? x[i] - end : x[i] * end;                    \
    BRONTES_PUT_HELD(line, i, y)                                                   \
  }
  BRONTES_FOR_HELD(LOAD)
  reference = line_max(reference);
  BRONTES_FOR_HELD(SUM)
  sum = line_sum(sum);
  vec4 end = ending(reference, sum);
  BRONTES_FOR_HELD(PUT)
}

// Adding e^8 up loses nothing, and a reference that is raised in large steps only is raised rarely: the sum is rescaled
// with an error each time, but what was there before hardly counts any more.
const float slack = 8.0;

void add_eight(inout vec4 reference, inout vec4 sum, vec4 a, vec4 b, vec4 c, vec4 d, vec4 e, vec4 f, vec4 g, vec4 h) {
  vec4 top = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)));
  vec4 raised = mix(reference, top, greaterThan(top, reference + slack));
  sum *= exp_of(reference, raised);
  reference = raised;
  sum += ((exp_of(a, raised) + exp_of(b, raised)) + (exp_of(c, raised) + exp_of(d, raised))) +
         ((exp_of(e, raised) + exp_of(f, raised)) + (exp_of(g, raised) + exp_of(h, raised)));
}

void look(Line line, out vec4 reference, out vec4 sum) {
  uint stride = row_stride();
  vec4 top = vec4(row_lowest);
  vec4 total = vec4(0.0);
  uint at = line.at;
  uint s = 0u;
#define NEXT(i) value4(line, at + i * stride, -BRONTES_INFINITY)
  for (; s + 8u <= line.steps; s += 8u) {
    add_eight(top, total, NEXT(0u), NEXT(1u), NEXT(2u), NEXT(3u), NEXT(4u), NEXT(5u), NEXT(6u), NEXT(7u));
    at += 8u * stride;
  }
#undef NEXT
#define NEXT(i) value_or(line, s + i, at + i * stride, -BRONTES_INFINITY)
  for (; s < line.steps; s += 8u) {
    add_eight(top, total, NEXT(0u), NEXT(1u), NEXT(2u), NEXT(3u), NEXT(4u), NEXT(5u), NEXT(6u), NEXT(7u));
    at += 8u * stride;
  }
  reference = line_max(top);
  sum = line_sum(total * exp_of(top, reference));
}

// From the slices of the line.
void gather(Line line, out vec4 reference, out vec4 sum) {
  vec4 top = vec4(row_lowest);
  vec4 total = vec4(0.0);
  uint end = end_slice(line);
#define SLICE(i) min(s + i * team, end - 1u)
  for (uint s = first_slice(); s < end; s += 4u * team) {
    top = max(top, max(max(partial4(line, 0u, s), partial4(line, 0u, SLICE(1u))),
                       max(partial4(line, 0u, SLICE(2u)), partial4(line, 0u, SLICE(3u)))));
  }
  reference = line_max(top);
#define SHARE(i) \
  (s + i * team < end ? partial4(line, 1u, s + i * team) * exp_of(partial4(line, 0u, s + i * team), reference) : vec4(0.0))
  for (uint s = first_slice(); s < end; s += 4u * team) {
    total += (SHARE(0u) + SHARE(1u)) + (SHARE(2u) + SHARE(3u));
  }
  // Every lane of a row has all four alike.
  if (columns == 0u) total *= 0.25;
  sum = line_sum(total);
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  Line line = row_line(group);
  if (held != 0u) {
    hold(line);
    return;
  }
  vec4 reference;
  vec4 sum;
  if (stage == stage_finish) {
    gather(line, reference, sum);
  } else {
    look(line, reference, sum);
  }
  if (stage == stage_partial) {
    put_partial(line, 0u, reference);
    put_partial(line, 1u, sum);
    return;
  }
  vec4 end = ending(reference, sum);
#define RESULT(at) put4(line, at, result4(value4(line, at, 0.0), reference, end));
  BRONTES_FOR_STEPS(line, RESULT)
}
