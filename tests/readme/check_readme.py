#!/usr/bin/env python3
"""Compiles the first C++ example of README.md as C++17 against the build tree, and runs it on lavapipe:
it must exit with 0 and print something.

Usage: check_readme.py --readme FILE --include DIR... --library FILE --with-driver SCRIPT --cxx COMPILER...
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--readme", required=True)
    parser.add_argument("--include", action="append", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()

    blocks = re.findall(r"^```cpp\n(.*?)^```", pathlib.Path(arguments.readme).read_text(), re.MULTILINE | re.DOTALL)
    if not blocks:
        sys.exit("README.md has no ```cpp block")
    if "int main" not in blocks[0]:
        sys.exit("the first ```cpp block of README.md is not a whole program")

    library = pathlib.Path(arguments.library).resolve()
    with tempfile.TemporaryDirectory(prefix="brontes-readme-") as folder:
        source = pathlib.Path(folder) / "example.cpp"
        program = pathlib.Path(folder) / "example"
        source.write_text(blocks[0])
        subprocess.run(
            [*arguments.cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror",
             *[f"-I{path}" for path in arguments.include], str(source), "-o", str(program), str(library),
             f"-Wl,-rpath,{library.parent}", "-ldl", "-lpthread"],
            check=True)
        done = subprocess.run([arguments.with_driver, "lavapipe", "--", str(program)], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    if done.returncode == 0 and not done.stdout.strip():
        sys.exit("the example printed nothing")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
