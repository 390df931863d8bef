#!/usr/bin/env python3
"""Fails where a room of the library includes one it must not know.

Usage: tools/check_layers.py [--root DIR] [--stamp FILE] [--depfile FILE]

The folders of lib/ are rooms, and ROOMS says which others each of them may include. Programs that stand for users of
the library may include its public headers only, apart from what PROGRAMS allows them.

DIR is the project's folder, the one above tools/ unless told. FILE after --stamp is written when all is well; the one
after --depfile then names, in Make's syntax, what the result depends on.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Set


class Room(NamedTuple):
    sees: str             # rooms, all of them further up in the table
    vulkan: bool = False  # may include Vulkan's headers


# In the order of the flow. `kernels` is what tools/kernelgen.py generates, and elementwise.def.
ROOMS: Dict[str, Room] = {
    "include": Room("", vulkan=True),  # the public headers; only those of Vulkan use it
    "kernels": Room(""),
    "util": Room(""),
    "reference": Room(""),
    "files": Room("util"),
    "trace": Room("util"),
    "spirv": Room("kernels util"),
    "weights": Room("util"),
    "record": Room("kernels util"),
    "plan": Room("kernels util record"),
    "ops": Room("kernels util reference spirv weights record plan"),
    "shadow": Room("kernels util reference record plan"),
    "profile": Room("kernels util record plan"),
    "vk": Room("kernels util files trace spirv", vulkan=True),
    "encode": Room("kernels util record plan vk", vulkan=True),
    "submit": Room("kernels util trace record plan profile vk encode", vulkan=True),
    "engine": Room("kernels util files record plan ops vk", vulkan=True),
    "tune": Room("kernels util record plan ops vk encode submit engine", vulkan=True),
    "api": Room("kernels util reference trace spirv weights record plan ops shadow profile vk encode submit engine tune", vulkan=True),
    "capi": Room("kernels", vulkan=True),  # over the public headers
}

# Rooms of lib/ that a program may include besides the public headers and its own.
PROGRAMS: Dict[str, str] = {
    "benchmarks": "util",
    "examples": "",
    "tests/consumer": "",
    "tools/brontes": "util",
    "tools/support": "",
}

SOURCES = {".cpp", ".hpp", ".h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
NOT_ROOMS = {"layer_guard"}


def check_table() -> List[str]:
    problems, above = [], set()
    for name, room in ROOMS.items():
        problems += [f"tools/check_layers.py: {name} may include {other}, which is not further up in the table"
                     for other in room.sees.split() if other not in above]
        above.add(name)
    return problems


class Checker:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.lib = root / "lib"
        self.problems = check_table()
        self.read: Set[Path] = set()

    def room_of(self, path: Path) -> Optional[str]:
        """The room a file lies in; none for files outside of the library."""
        if self.lib in path.parents:
            return path.relative_to(self.lib).parts[0]
        return "kernels" if self.root / "kernels" in path.parents else None

    def target(self, source: Path, quoted: bool, name: str) -> Optional[str]:
        """The room that an include leads to; none where it leads out of the library."""
        if quoted and (beside := source.parent / name).exists():
            return self.room_of(beside.resolve())
        if name.startswith("brontes/"):
            return "include"
        if name in ("kernels.hpp", "elementwise.def"):
            return "kernels"
        first = name.split("/")[0]
        return first if "/" in name and (first in ROOMS or (self.lib / first).is_dir()) else None

    def includes(self, source: Path):
        self.read.add(source)
        text = source.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            yield f"{source.relative_to(self.root)}:{line}", match[1] == '"', match[2]

    def check_library(self) -> None:
        for folder in sorted(self.lib.iterdir()):
            if not folder.is_dir() or folder.name in NOT_ROOMS:
                continue
            room = ROOMS.get(folder.name)
            if room is None:
                self.problems.append(f"lib/{folder.name}: not in the table of tools/check_layers.py")
                continue
            allowed = {folder.name, "include", *room.sees.split()}
            for source in files_below(folder):
                for where, quoted, name in self.includes(source):
                    to = self.target(source, quoted, name)
                    if to is not None and to not in allowed:
                        self.problems.append(f"{where}: {folder.name}/ must not include {to}/ ({name})")
                    if reaches_vulkan(name) and not (room.vulkan and may_reach_vulkan(folder.name, source)):
                        self.problems.append(f"{where}: {folder.name}/ knows no Vulkan ({name})")

    def check_programs(self) -> None:
        for program, rooms in PROGRAMS.items():
            allowed = {"include", *rooms.split()}
            for source in files_below(self.root / program):
                for where, quoted, name in self.includes(source):
                    to = self.target(source, quoted, name)
                    if to is not None and to not in allowed:
                        self.problems.append(f"{where}: {program} must not include {to}/ ({name})")


def files_below(folder: Path) -> List[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def reaches_vulkan(name: str) -> bool:
    return name.startswith(("vulkan/", "vk_mem_alloc")) or name in ("brontes/vulkan.hpp", "brontes/brontes_vulkan.h")


def may_reach_vulkan(room: str, source: Path) -> bool:
    return room != "include" or source.name in ("vulkan.hpp", "brontes_vulkan.h")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--stamp", type=Path)
    parser.add_argument("--depfile", type=Path)
    arguments = parser.parse_args()
    checker = Checker(arguments.root.resolve())
    checker.check_library()
    checker.check_programs()
    for problem in checker.problems:
        print(problem, file=sys.stderr)
    if checker.problems:
        return 1
    if arguments.stamp:
        arguments.stamp.write_text("")
        if arguments.depfile:
            # Folders too: a file that is added or removed changes them.
            inputs = checker.read | {path.parent for path in checker.read} | {checker.lib}
            escaped = (str(path).replace(" ", "\\ ") for path in sorted(inputs))
            arguments.depfile.write_text(f"{arguments.stamp}: {' '.join(escaped)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
