#!/usr/bin/env python3
"""The shared library exports the names of a list and nothing else, all of one version, and does not link to libvulkan.

Usage: check_symbols.py [--write] [--abi VERSION] LIBBRONTES.SO

--write makes the list anew, from the library as it is. A name that is gone or changed breaks programs: docs/abi.md.
"""
import argparse
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path(__file__).parent / "exported.txt"

# What belongs to brontes: its functions, the type information of its classes, and the C functions.
OURS = re.compile(r"^(((vtable|typeinfo|typeinfo name|guard variable|VTT) for )?brontes::|brontes_\w+$)")
PRIVATE = re.compile(
    r"\bbrontes::(vk|record|plan|encode|engine|submit|capi|kernels|spirv|files|util|weights|tune)::|::State\b")


def tool(*command, text=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


def exported_symbols(library):
    """(kind, name, version) of each, the names as C++ writes them."""
    table = tool("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    rows = [line.split()[-2:] for line in table.splitlines()]
    names = tool("c++filt", text="\n".join(symbol.split("@")[0] for _, symbol in rows)).splitlines()
    return [(kind, name, symbol.partition("@")[2].lstrip("@")) for (kind, symbol), name in zip(rows, names)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--abi")
    parser.add_argument("library")
    arguments = parser.parse_args()
    problems = []

    symbols = [row for row in exported_symbols(arguments.library) if row[0] != "A"]  # A: the version itself
    for kind, name, version in symbols:
        if re.match(r"(?i)(vk|vma)", name):
            problems.append(f"a Vulkan symbol is exported: {name}")
        elif PRIVATE.search(name.split("(")[0]):
            problems.append(f"a private symbol is exported: {kind} {name}")
        elif not OURS.match(name):
            problems.append(f"exported outside namespace brontes: {kind} {name}")
        elif kind == "u":
            problems.append(f"a unique symbol, which keeps the library from being unloaded: {name}")
        elif arguments.abi and version != f"BRONTES_{arguments.abi}":
            problems.append(f"the version of {name} is '{version}', not BRONTES_{arguments.abi}")

    names = sorted({name for _, name, _ in symbols})
    if arguments.write and not problems:
        LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        print(f"wrote {len(names)} names to {LIST}")
    listed = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    differences = [f"no longer exported: {name}" for name in sorted(set(listed) - set(names))]
    differences += [f"exported, but not in the list: {name}" for name in sorted(set(names) - set(listed))]
    if differences:
        script = pathlib.Path(__file__).resolve()
        differences.append(f"if that is intended: {script} --write {pathlib.Path(arguments.library).resolve()}")
    problems += differences

    dynamic = tool("readelf", "-d", arguments.library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    problems += [f"links to {name}" for name in needed if "vulkan" in name.lower()]
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    if arguments.abi and soname != [f"libbrontes.so.{arguments.abi}"]:
        problems.append(f"the soname is {soname}, not libbrontes.so.{arguments.abi}")

    for problem in problems:
        print(problem)
    print(f"{len(symbols)} exported symbols, {len(problems)} problems; needs {', '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
