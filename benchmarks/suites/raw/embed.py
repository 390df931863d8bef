"""Usage: embed.py GLSLANG SOURCE.comp OUTPUT.hpp

Compiles a shader to SPIR-V and writes its words as a C++ array, offset_words.
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

compiler, source, output = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    binary = pathlib.Path(folder) / "module.spv"
    subprocess.run([compiler, "-V", "--target-env", "vulkan1.2", "--quiet", "-o", str(binary), source], check=True)
    data = binary.read_bytes()
words = struct.unpack(f"<{len(data) // 4}I", data)
text = ",".join(f"0x{word:08x}u" for word in words)
pathlib.Path(output).write_text(
    "#pragma once\n#include <cstdint>\nnamespace brontes::bench::raw {\n"
    f"inline constexpr std::uint32_t offset_words[] = {{{text}}};\n}}\n", encoding="utf-8")
