#!/usr/bin/env python3
"""Compiles the C headers alone as C11, C17 and C++17 with gcc and clang, then the C tests as C11, links them to the
shared library and runs them on lavapipe.

Usage: check_compilers.py --library LIBBRONTES.SO --with-driver SCRIPT --include DIR... --source FILE...

Exit status 77 where there is no C compiler but the build's own.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
HEADERS = ["brontes/brontes.h", "brontes/brontes_vulkan.h"]
STANDARDS = {"c11": "c", "c17": "c", "c++17": "c++"}


def run(*command: str) -> None:
    print("+", *command, flush=True)
    subprocess.run(command, check=True)


def check(compiler: str, arguments: argparse.Namespace, folder: pathlib.Path) -> int:
    include = [f"-I{path}" for path in arguments.include]
    for header in HEADERS:
        alone = folder / "alone.c"
        alone.write_text(f"#include <{header}>\n#include <{header}>\n", encoding="utf-8")
        for standard, language in STANDARDS.items():
            run(compiler, "-x", language, f"-std={standard}", *WARNINGS, *include, "-fsyntax-only", str(alone))
    library = pathlib.Path(arguments.library).resolve()
    program = folder / f"capi-tests-{compiler}"
    run(compiler, "-std=c11", *WARNINGS, *include, *arguments.source, "-o", str(program), str(library),
        f"-Wl,-rpath,{library.parent}", "-lm")
    return subprocess.run([arguments.with_driver, "lavapipe", "--", str(program)], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--include", action="append", required=True)
    parser.add_argument("--source", nargs="+", required=True)
    arguments = parser.parse_args()
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    if len(compilers) < 2:
        print(f"found {compilers or 'none'} of gcc and clang")
        if not compilers:
            return 77
    for compiler in compilers:
        with tempfile.TemporaryDirectory(prefix="brontes-capi-") as folder:
            status = check(compiler, arguments, pathlib.Path(folder))
        if status != 0:
            print(f"the C tests compiled by {compiler} ended with status {status}")
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
