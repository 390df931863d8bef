#!/usr/bin/env python3
"""Tests tools/check_layers.py: the library passes it, and a copy with one include too many does not.

Usage: check_rooms.py ROOT
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, Tuple

# A file, what is written into it, and what the checker has to say.
VIOLATIONS: List[Tuple[str, str, str]] = [
    ("lib/vk/queue.cpp", '#include "plan/plan.hpp"', "vk/ must not include plan/"),
    ("lib/vk/memory.hpp", '#include "submit/program.hpp"', "vk/ must not include submit/"),
    ("lib/vk/queue.cpp", '#  include <encode/encoder.hpp>', "vk/ must not include encode/"),
    ("lib/vk/queue.cpp", '#include "../record/graph.hpp"', "vk/ must not include record/"),
    ("lib/record/graph.hpp", '#include "plan/plan.hpp"', "record/ must not include plan/"),
    ("lib/plan/plan.hpp", '#include "vk/handle.hpp"', "plan/ must not include vk/"),
    ("lib/plan/plan.cpp", '#include <vulkan/vulkan_core.h>', "plan/ knows no Vulkan"),
    ("lib/files/keyed_file.cpp", '#include <brontes/vulkan.hpp>', "files/ knows no Vulkan"),
    ("lib/spirv/prune.cpp", '#include "vk/result.hpp"', "spirv/ must not include vk/"),
    ("lib/util/hex.hpp", '#include "files/trusted_file.hpp"', "util/ must not include files/"),
    ("lib/encode/encoder.cpp", '#include "submit/transfer.hpp"', "encode/ must not include submit/"),
    ("lib/tune/tuner.cpp", '#include "api/access.hpp"', "tune/ must not include api/"),
    ("lib/capi/batch.cpp", '#include "api/access.hpp"', "capi/ must not include api/"),
    ("lib/capi/ops.cpp", '#include "record/graph.hpp"', "capi/ must not include record/"),
    ("lib/include/brontes/brontes.h", '#include <vulkan/vulkan.h>', "include/ knows no Vulkan"),
    ("lib/include/brontes/error.hpp", '#include "vk/result.hpp"', "include/ must not include vk/"),
    ("lib/include/brontes/batch.hpp", '#include <brontes/vulkan.hpp>', "include/ knows no Vulkan"),
    ("lib/attic/attic.hpp", "", "lib/attic: not in the table"),
    ("tools/brontes/demo.cpp", '#include "plan/plan.hpp"', "tools/brontes must not include plan/"),
]


def check(root: Path) -> "subprocess.CompletedProcess[str]":
    script = Path(sys.argv[1]) / "tools" / "check_layers.py"
    return subprocess.run([sys.executable, script, "--root", root], stderr=subprocess.PIPE, text=True, check=False)


def main() -> int:
    root = Path(sys.argv[1])
    result = check(root)
    if result.returncode != 0:
        print(f"the library breaks its own rule:\n{result.stderr}")
        return 1
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        for folder in ("lib", "kernels", "tools", "benchmarks"):
            shutil.copytree(root / folder, copy / folder)
        for name, include, expected in VIOLATIONS:
            path = copy / name
            was = path.read_text(encoding="utf-8") if path.exists() else None
            path.parent.mkdir(exist_ok=True)
            path.write_text((was or "") + f"\n{include}\n", encoding="utf-8")
            result = check(copy)
            if result.returncode != 1 or expected not in result.stderr or result.stderr.count("\n") != 1:
                print(f"{name} with {include}: exit status {result.returncode}, not \"{expected}\":\n{result.stderr}")
                failures += 1
            if was is None:
                shutil.rmtree(path.parent)
            else:
                path.write_text(was, encoding="utf-8")
    print(f"{len(VIOLATIONS)} violations, {failures} of them not found")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
