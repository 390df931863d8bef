#!/usr/bin/env python3
"""What `brontes kernels --compiled` says of kernels on a driver that tells: RADV on a null device.

Usage: check_compiled.py BRONTES
"""
import json
import subprocess
import sys

problems = []


def brontes(*arguments):
    done = subprocess.run([sys.argv[1], "kernels", "--compiled", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        problems.append(f"{' '.join(arguments)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def expect(what, condition):
    if not condition:
        problems.append(what)


report = json.loads(brontes("matmul/gemv/nk", "softmax", "--json"))
expect("the device is named", "RADV" in report["device"])
pipelines = report["pipelines"]
names = [p["name"] for p in pipelines]
expect(f"several variants: {names}", len({n for n in names if n.startswith("matmul/gemv/nk")}) > 3)
expect("softmax", any("softmax" in n for n in names))
expect("nothing else", all("matmul/gemv/nk" in n or "softmax" in n for n in names))
for p in pipelines:
    expect(f"{p['name']}: figures", p["registers"] > 0 and p["instructions"] > 0 and p["waves"] > 0 and p["statistics"])
    expect(f"{p['name']}: constants", isinstance(p["constants"], dict))
table = brontes("softmax")
expect("a table for people", "regs" in table.splitlines()[1] and "softmax" in table)
expect("code", "v_" in brontes("softmax", "--isa") and "s_endpgm" in brontes("softmax", "--isa"))

for problem in problems:
    print(f"check_compiled: {problem}", file=sys.stderr)
sys.exit(1 if problems else 0)
