// Branches on the constants a, b and c in every place that structured control flow has for them. It is
// GLSL and C++: specialize.cpp computes with it what the specialized module has to compute.
// `values` holds x in [0], and the result in [1] or [2].

uint early(uint x) {
  if (a == 1u) return x + 1u;
  if (x == 3u) return 7u;
  if (c) return x * 2u;
  return x;
}

uint chosen(uint which, uint x) {
  switch (which) {
    case 0u: return x;
    case 1u: x += 1u;  // falls through
    case 2u:
      if (x > 4u) break;
      x *= 3u;
      break;
    case 3u:
      for (uint i = 0u; i < x; ++i) {
        if (i == 5u) return i;
        if (b == 2u) break;
      }
      break;
    default: x = 100u;
  }
  return x + which;
}

uint loops(uint x) {
  uint sum = 0u;
  for (uint i = 0u; i < 4u; ++i) {
    if (a == 2u) break;
    if (b == 1u) continue;
    if (c && x == 2u) break;
    sum += i;
  }
  do {
    sum += x + 1u;
    if (a == 3u) break;
  } while (b == 3u && sum < 50u);
  do sum += 1u; while (false);
  while (c) {
    sum += 2u;
    if (sum > 40u) break;
    if (a == 0u) {
      if (b != 0u) break;
      return sum;
    }
  }
  for (;;) {
    if (a < 4u) break;
    switch (b) {
      case 1u: sum += 5u; break;
      case 2u:
        sum += 4u;
        if (sum < 55u) continue;
        break;
      default: sum += 6u;
    }
    if (sum > 60u) return sum;
    if (a == 5u) return 1u;
  }
  for (uint i = 0u; i < a; ++i) {
    for (uint j = 0u; j < b; ++j) {
      if (j == x) break;
      if (c) continue;
      sum += i * j;
    }
  }
  return sum;
}

void run() {
  uint x = values[0];
  uint y = early(x);
  y += chosen(a, x) + chosen(b, y) + chosen(2u, y) + chosen(x, y);
  y += loops(x);
  switch (a) {
    case 0u:
    case 1u:
      switch (b) {
        case 0u: y += c ? 1u : 2u; break;
        case 1u: y ^= 3u;
      }
      if (x > 2u) break;
      y += 9u;  // falls through
    default: y += a << 1;
  }
  if (a + b > 3u || (c && x == 1u)) {
    y += 10u;
    if (c != (b == 1u)) {
      values[2] = y;
      return;
    }
  } else if (a * 2u >= 4u && x < 100u) {
    y -= 1u;
  }
  bool found = false;
  for (uint i = 0u; i < 3u && !found; ++i) {
    found = c && values[i] == a;
    if (!found && b == 0u) y += i;
  }
  values[1] = y;
}
