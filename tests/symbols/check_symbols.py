#!/usr/bin/env python3
"""The shared library exports namespace brontes, the C functions brontes_* and nothing else, and does not link to libvulkan.

Usage: check_symbols.py LIBBRONTES.SO
"""
import re
import subprocess
import sys

# What belongs to brontes: its functions, and the type information of its classes.
OURS = re.compile(r"^brontes_[a-z0-9_]+$|^((vtable|typeinfo|typeinfo name|guard variable|VTT) for )?brontes::")


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library = sys.argv[1]
    problems = []

    exported = []
    for line in tool("nm", "-D", "--defined-only", library).splitlines():
        kind, mangled = line.split()[-2:]
        exported.append((kind, mangled.split("@")[0]))
    names = tool("c++filt", *[mangled for _, mangled in exported]).splitlines() if exported else []
    for (kind, mangled), name in zip(exported, names):
        if re.match(r"(?i)(vk|vma)", mangled) or re.match(r"(?i)(vk|vma)", name):
            problems.append(f"a Vulkan symbol is exported: {name}")
        elif re.search(r"\bbrontes::(vk|record|plan|encode|submit|kernels)::", name.split("(")[0]):
            problems.append(f"a private symbol is exported: {kind} {name}")
        elif not OURS.match(name):
            problems.append(f"exported outside namespace brontes: {kind} {name}")
    if not any(name.startswith("brontes::Batch::execute") for name in names):
        problems.append("brontes::Batch::execute is not exported: is this the right library?")

    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", tool("readelf", "-d", library))
    problems += [f"links to {name}" for name in needed if "vulkan" in name.lower()]

    for problem in problems:
        print(problem)
    print(f"{len(exported)} exported symbols, {len(problems)} problems; needs {', '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
