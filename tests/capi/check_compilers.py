#!/usr/bin/env python3
"""Installs the build into a staged prefix, compiles the C headers there alone as C11, C17 and C++17 with gcc and clang,
then the C tests as C11, links them to the shared library as pkg-config says and runs them on lavapipe.

Usage: check_compilers.py --build DIR --with-driver SCRIPT --include DIR... --source FILE...

The folders to include are those of the tests' own kernels.

Exit status 77 where there is no C compiler but the build's own.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parent.parent / "consumer"))
from staging import Prefix, check_links, install, on_lavapipe, run  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
HEADERS = ["brontes/brontes.h", "brontes/brontes_vulkan.h"]
STANDARDS = {"c11": "c", "c17": "c", "c++17": "c++"}


def check(compiler: str, arguments: argparse.Namespace, prefix: Prefix, folder: pathlib.Path) -> None:
    include = [*prefix.pkg_config("--cflags", "brontes"), *(f"-I{path}" for path in arguments.include)]
    for header in HEADERS:
        alone = folder / "alone.c"
        alone.write_text(f"#include <{header}>\n#include <{header}>\n", encoding="utf-8")
        for standard, language in STANDARDS.items():
            run(compiler, "-x", language, f"-std={standard}", *WARNINGS, *include, "-fsyntax-only", str(alone))
    program = folder / f"capi-tests-{compiler}"
    run(compiler, "-std=c11", *WARNINGS, *include, *arguments.source, "-o", str(program),
        *prefix.pkg_config("--libs", "brontes"), "-lm")
    check_links("shared", program)
    on_lavapipe(arguments.with_driver, program, libdir=prefix.libdir)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--include", action="append", required=True)
    parser.add_argument("--source", nargs="+", required=True)
    arguments = parser.parse_args()
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    if len(compilers) < 2:
        print(f"found {compilers or 'none'} of gcc and clang")
        if not compilers:
            return 77
    with tempfile.TemporaryDirectory(prefix="brontes-capi-") as folder:
        prefix = install(arguments.build, pathlib.Path(folder))
        for compiler in compilers:
            check(compiler, arguments, prefix, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
