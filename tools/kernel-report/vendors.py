#!/usr/bin/env python3
"""Usage: tools/kernel-report/vendors.py KERNEL-REPORT [--write docs/kernels.md]

Prints the table of what every vendor's compiler makes of every pipeline, as Markdown. With --write it replaces the one
in the file, between the lines that begin with <!-- vendors. Wants what tools/setup --with-gpu-compilers fetches.
"""

import json
import re
import subprocess
import sys

TARGETS = ["nvidia-ada", "amd-navi21", "amd-navi31", "amd-gfx1201", "intel-dg2", "intel-lnl", "adreno-740", "apple-m1"]


def report(program, target):
    run = subprocess.run([program, "--target", target, "--json"], stdout=subprocess.PIPE, check=False)
    if run.returncode not in (0, 1):  # 1: something spills, which the table shows
        sys.exit(f"vendors.py: {program} --target {target} ended with {run.returncode}")
    return json.loads(run.stdout)


def cell(pipeline):
    if pipeline is None:
        return "-"
    text = f"{pipeline['registers']}, {pipeline['instructions']}"
    if pipeline["waves"]:
        text += f", {pipeline['waves']}"
    if pipeline["spills"] or pipeline["scratch_bytes"]:
        text += f", **spills {pipeline['spills']}**"
    return text


def table(reports):
    names = list(dict.fromkeys(p["name"] for r in reports.values() for p in r["pipelines"]))
    found = {t: {p["name"]: p for p in r["pipelines"]} for t, r in reports.items()}
    lines = ["| pipeline | " + " | ".join(reports) + " |", "|---" * (len(reports) + 1) + "|"]
    lines += [f"| {n} | " + " | ".join(cell(found[t].get(n)) for t in reports) + " |" for n in names]
    spilling = sum(1 for r in reports.values() for p in r["pipelines"] if p["spills"] or p["scratch_bytes"])
    lines.append("")
    lines.append(f"{len(names)} pipelines, {spilling} of {sum(len(r['pipelines']) for r in reports.values())} spill. "
                 f"{re.sub('.*(?=Mesa)', '', next(iter(reports.values()))['driver'])}.")
    return "\n".join(lines)


def main():
    if len(sys.argv) not in (2, 4) or (len(sys.argv) == 4 and sys.argv[2] != "--write"):
        sys.exit(__doc__)
    text = table({target: report(sys.argv[1], target) for target in TARGETS})
    if len(sys.argv) == 2:
        print(text)
        return
    with open(sys.argv[3], encoding="utf-8") as file:
        document = file.read()
    new, count = re.subn(r"(<!-- vendors begin[^\n]*\n).*?(<!-- vendors end)", lambda m: m[1] + text + "\n" + m[2],
                         document, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"vendors.py: {sys.argv[3]} has no place for the table")
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
