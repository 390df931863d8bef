#!/usr/bin/env python3
"""Checks that kernelgen unrolls loops marked [[unroll]], nested and with guards, and refuses those that it cannot."""

import os
import subprocess
import sys
import tempfile

FRAME = """#version 450
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 1) in;
layout(constant_id = 1) const uint rows = 3;
layout(set = 0, binding = 0, std430) buffer data_view { float data[]; };
void main() {
  float sum[8];
  %s
}
"""
UNROLLED = """
  [[unroll]] for (uint i = 0u; i < 8u; ++i) sum[i] = data[i];
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (i < rows) {
      [[unroll]] for (uint j = 0u; j < 2u; ++j) sum[i * 2u + j] *= data[8u + j];
    }
  }
  [[unroll]] for (uint i = 0u; i < 8u; ++i) data[i] = sum[i];
"""
REFUSED = {
    "a bound that is no literal": "[[unroll]] for (uint i = 0u; i < rows; ++i) sum[i] = data[i]; data[0] = sum[1];",
    "a way out": "[[unroll]] for (uint i = 0u; i < 8u; ++i) { if (data[i] > 1.0) break; data[i] = 2.0; }",
}


def compile_kernel(python: str, kernelgen: str, folder: str, body: str) -> subprocess.CompletedProcess:
    source = os.path.join(folder, "kernel.comp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(FRAME % body)
    return subprocess.run([python, kernelgen, "compile", "-o", os.path.join(folder, "kernel.spv"), source],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main() -> int:
    kernelgen = sys.argv[1]
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(kernelgen))
    from kernelgen import OP_LOOP_MERGE, OP_TYPE_ARRAY, Module
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        done = compile_kernel(sys.executable, kernelgen, folder, UNROLLED)
        if done.returncode != 0:
            failures.append("kernelgen refused loops that can be unrolled:\n" + done.stdout)
        else:
            with open(os.path.join(folder, "kernel.spv"), "rb") as file:
                opcodes = [opcode for opcode, _, _ in Module.parse(file.read()).instructions()]
            if OP_LOOP_MERGE in opcodes:
                failures.append("a loop is left")
            if OP_TYPE_ARRAY in opcodes:
                failures.append("an array is left")
        for what, body in REFUSED.items():
            done = compile_kernel(sys.executable, kernelgen, folder, body)
            if done.returncode == 0 or "marked [[unroll]]" not in done.stdout:
                failures.append(f"kernelgen did not refuse {what}:\n{done.stdout}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
