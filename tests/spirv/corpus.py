#!/usr/bin/env python3
"""Compiles random shaders (random_shader.py) and those written by hand into one file for spirv-tests.

Each goes through glslang for one of Vulkan's versions, with or without debug information, and most then through
spirv-opt: its usual recipes, or a random sequence of passes. What spirv-val refuses, or spirv-opt cannot do, is left
out: these are bugs of other people.

The file is a sequence of modules: the number of bytes of the name, the name, the number of words, the words; numbers
are 32-bit little-endian.
"""

import argparse
import concurrent.futures
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from random_shader import Random, shader

VERSIONS = ["vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.2"]

# Not --loop-invariant-code-motion: SPIRV-Tools 2023.1 makes endless loops with it.
PASSES = """
    --ccp --cfg-cleanup --combine-access-chains --compact-ids --convert-local-access-chains --copy-propagate-arrays
    --eliminate-dead-branches --eliminate-dead-code-aggressive --eliminate-dead-const --eliminate-dead-functions
    --eliminate-dead-inserts --eliminate-dead-variables --eliminate-insert-extract --eliminate-local-multi-store
    --eliminate-local-single-block --eliminate-local-single-store --if-conversion --inline-entry-points-exhaustive
    --local-redundancy-elimination --loop-peeling --loop-unroll --loop-unswitch --merge-blocks
    --merge-return --private-to-local --redundancy-elimination --scalar-replacement=0
    --simplify-instructions --ssa-rewrite --strength-reduction --unify-const --vector-dce --wrap-opkill
""".split()


class Tools:
    def __init__(self, args):
        self.glslang = args.glslang
        self.opt = args.spirv_opt
        self.val = args.spirv_val
        self.as_ = args.spirv_as


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


def recipe(seed):
    """The version of Vulkan, glslang's options, and spirv-opt's."""
    random = Random(seed + 1_000_000)
    options = [[], [], [], ["-g"]][random.below(4)]
    kind = random.below(6)
    if kind == 0:
        passes = []
    elif kind == 1:
        passes = ["-O"]
    elif kind == 2:
        passes = ["-Os"]
    elif kind == 3:  # without functions and variables
        passes = ["--inline-entry-points-exhaustive", "--scalar-replacement=0", "--ssa-rewrite"]
        passes += [random.pick(PASSES) for _ in range(random.below(4))]
    else:
        passes = [random.pick(PASSES) for _ in range(2 + random.below(6))]
    return random.pick(VERSIONS), options, passes


def compile_text(tools, text, version, options, passes, folder, stem):
    """The module's bytes, or None if spirv-opt or spirv-val failed. glslang and spirv-as must not."""
    source, module = folder / f"{stem}.comp", folder / f"{stem}.spv"
    source.write_text(text)
    if "OpCapability" in text:
        command = [tools.as_, "--preserve-numeric-ids", "--target-env", version, str(source), "-o", str(module)]
    else:
        command = [tools.glslang, "--quiet", "-V", *options, "--target-env", version, "-o", str(module), str(source)]
    compiled = run(command)
    if compiled.returncode != 0:
        sys.exit(f"{stem}: {' '.join(command)}\n{compiled.stdout}")
    if passes and run([tools.opt, f"--target-env={version}", *passes, str(module), "-o", str(module)]).returncode != 0:
        return None
    if run([tools.val, "--target-env", version, str(module)]).returncode != 0:
        return None
    return module.read_bytes()


def random_module(tools, seed, folder):
    version, options, passes = recipe(seed)
    wide = seed % 8 == 7
    if wide and version == "vulkan1.0":
        version = "vulkan1.1"
    module = compile_text(tools, shader(seed, wide), version, options, passes, folder, f"random{seed}")
    return " ".join([f"random {seed}", version, *options, *passes]), module


def written_modules(tools, path, folder):
    recipes = [("vulkan1.3", [], []), ("vulkan1.3", [], ["-O"]), ("vulkan1.3", [], ["-Os"])]
    if path.suffix == ".comp":
        recipes += [("vulkan1.2", [], []), ("vulkan1.2", ["-g"], []), ("vulkan1.2", ["-gVS"], [])]
    for version, options, passes in recipes:
        module = compile_text(tools, path.read_text(), version, options, passes, folder, path.stem)
        if module is not None:
            yield " ".join([path.name, version, *options, *passes]), module
        elif not options and not passes:
            sys.exit(f"{path.name}: not valid")


def pack(out, name, module):
    encoded = name.encode()
    out.write(struct.pack("<I", len(encoded)) + encoded + struct.pack("<I", len(module) // 4) + module)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glslang", default="glslangValidator")
    parser.add_argument("--spirv-opt", default="spirv-opt")
    parser.add_argument("--spirv-val", default="spirv-val")
    parser.add_argument("--spirv-as", default="spirv-as")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=0, help="how many random shaders")
    parser.add_argument("--print", type=int, metavar="SEED", help="prints one random shader and does nothing else")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("written", nargs="*", type=Path, help="shaders written by hand")
    args = parser.parse_args()
    if args.print is not None:
        print(shader(args.print, args.print % 8 == 7), end="")
        return
    tools = Tools(args)
    with tempfile.TemporaryDirectory() as name, args.output.open("wb") as out:
        folder = Path(name)
        for path in args.written:
            for label, module in written_modules(tools, path, folder):
                pack(out, label, module)
        packed = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            seeds = range(args.first, args.first + args.count)
            for label, module in pool.map(lambda seed: random_module(tools, seed, folder), seeds):
                if module is not None:
                    pack(out, label, module)
                    packed += 1
    if packed < args.count * 3 // 4:
        sys.exit(f"only {packed} of {args.count} shaders became valid modules")


if __name__ == "__main__":
    main()
