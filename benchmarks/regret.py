#!/usr/bin/env python3
"""The regret of automatic choices, from the JSON of `brontes-bench select`.

Usage: benchmarks/regret.py FILE.json...

Regret is the time of the automatic choice divided by that of the best choice for the same work, both the medians of
interleaved runs. Prints the median and the worst, and every case above 1.25 with what was faster.
"""

import json
import statistics
import sys
from collections import defaultdict


def read(path):
    """Seconds per run by group and variant."""
    times = defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for case in report["cases"]:
        group, _, variant = case["name"].rpartition("/")
        if group.startswith("select/") and case.get("median"):
            times[group][variant] = case["median"]
    return times


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    for path in sys.argv[1:]:
        times = read(path)
        regrets = []
        for group, variants in times.items():
            if "auto" not in variants or len(variants) < 2:
                continue
            best = min(variants, key=variants.get)
            regrets.append((variants["auto"] / variants[best], group, best))
        if not regrets:
            sys.exit(f"{path}: holds no case of the suite select")
        regrets.sort(reverse=True)
        print(f"{path}: {len(regrets)} choices, median regret {statistics.median(r[0] for r in regrets):.2f}, "
              f"worst {regrets[0][0]:.2f}")
        for regret, group, best in regrets:
            if regret > 1.25:
                print(f"  {regret:5.2f}  {group}: {best}")


main()
