#!/usr/bin/env python3
"""Usage: tools/kernel-report/ggml.py KERNEL-REPORT LIBGGML-VULKAN.so

What every vendor's compiler makes of ggml-vulkan's kernels for one row and quantized weights, as Markdown, for comparison
with the library's own. The library is that of a package, which need not be installed:

    apt-get download libggml0-backend-vulkan && dpkg -x libggml0-backend-vulkan_*.deb .

Its SPIR-V has no names. The two kernels are known by what they declare: three specialization constants (lanes of a
workgroup, rows of W, rows of x), five buffers, blocks of 18 or 34 bytes, and x as vec4s of floats.
Wants what tools/setup --with-gpu-compilers fetches.
"""

import json
import struct
import subprocess
import sys
import tempfile

from vendors import TARGETS, cell

MAGIC = struct.pack("<I", 0x07230203)
OP_CAPABILITY, OP_DECORATE, OP_SPEC_CONSTANT, OP_FUNCTION, OP_FUNCTION_END = 17, 71, 50, 54, 56
SPEC_ID, ARRAY_STRIDE, BINDING = 1, 6, 33
ARITHMETIC, INT8 = 63, 39


def modules(data):
    """Every module in the bytes of a library, as lists of words."""
    at = data.find(MAGIC)
    while at >= 0:
        end, word = None, at + 20
        while word + 4 <= len(data):
            first, = struct.unpack_from("<I", data, word)
            length, opcode = first >> 16, first & 0xFFFF
            if length == 0 or (end is not None and opcode != OP_FUNCTION and word == end):
                break
            word += 4 * length
            if opcode == OP_FUNCTION_END:
                end = word
        if end is not None:
            yield list(struct.unpack_from(f"<{(end - at) // 4}I", data, at))
        at = data.find(MAGIC, at + 4)


def instructions(words):
    at = 5
    while at < len(words):
        yield at, words[at] & 0xFFFF, words[at + 1:at + (words[at] >> 16)]
        at += words[at] >> 16


class Declarations:
    def __init__(self, words):
        self.capabilities, self.strides, self.bindings, self.constants = set(), set(), set(), {}
        spec_ids = {}
        for at, opcode, operands in instructions(words):
            if opcode == OP_CAPABILITY:
                self.capabilities.add(operands[0])
            elif opcode == OP_DECORATE and operands[1] == SPEC_ID:
                spec_ids[operands[0]] = operands[2]
            elif opcode == OP_DECORATE and operands[1] == ARRAY_STRIDE:
                self.strides.add(operands[2])
            elif opcode == OP_DECORATE and operands[1] == BINDING:
                self.bindings.add(operands[2])
            elif opcode == OP_SPEC_CONSTANT and operands[1] in spec_ids:
                self.constants[spec_ids[operands[1]]] = at + 3


def find(all_modules, block, int8):
    """The smallest with subgroup arithmetic: others have more rows of the epilogue or sums in shared memory."""
    found = []
    for words in all_modules:
        d = Declarations(words)
        if (set(d.constants) == {0, 1, 2} and len(d.bindings) == 5 and d.strides == {1, 2, 4, 16, block}
                and ARITHMETIC in d.capabilities and (INT8 in d.capabilities) == int8):
            found.append((len(words), words, d))
    if not found:
        sys.exit(f"ggml.py: no kernel for blocks of {block} bytes; the library may have changed")
    return min(found, key=lambda f: f[0])[1:]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "rb") as file:
        everything = list(modules(file.read()))
    print("| pipeline | " + " | ".join(TARGETS) + " |")
    print("|---" * (len(TARGETS) + 1) + "|")
    for name, block, int8 in (("q4_0", 18, False), ("q8_0", 34, True)):
        words, declared = find(everything, block, int8)
        # A subgroup of 32, two rows of W, one of x: what ggml-vulkan asks for on most devices.
        for constant, value in {0: 32, 1: 2, 2: 1}.items():
            words[declared.constants[constant]] = value
        cells = []
        with tempfile.NamedTemporaryFile(suffix=".spv") as module:
            module.write(struct.pack(f"<{len(words)}I", *words))
            module.flush()
            for target in TARGETS:
                run = subprocess.run([sys.argv[1], "--target", target, "--json", "--spirv", module.name],
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
                pipelines = json.loads(run.stdout)["pipelines"] if run.returncode in (0, 1) and run.stdout else []
                cells.append(cell(pipelines[0] if pipelines else None))
        print(f"| ggml-vulkan, {name}, one row | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
