#!/usr/bin/env python3
"""Installs the build into a staged prefix, moves that, and builds and runs a program with CMake against it.

Usage: check_cmake.py --build DIR --with-driver SCRIPT --version VERSION [--kinds shared,static] --cxx COMPILER...

Status 77 means that there is no CMake.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile

from staging import check_links, fails, install, on_lavapipe, run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--kinds", default="shared,static")
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()
    if not shutil.which("cmake"):
        print("there is no cmake")
        return 77
    kinds = arguments.kinds.split(",")
    major, minor, patch = map(int, arguments.version.split("."))
    source = pathlib.Path(__file__).parent / "cmake"
    environment = dict(os.environ, CXX=" ".join(arguments.cxx), CMAKE_GENERATOR="Ninja")

    with tempfile.TemporaryDirectory(prefix="brontes-cmake-") as folder:
        work = pathlib.Path(folder)
        everything = install(arguments.build, work)

        def configure(name, prefix, version, asked):
            return ["cmake", "-S", str(source), "-B", str(work / name), f"-DCMAKE_PREFIX_PATH={prefix.root}",
                    f"-DVERSION={version}", "-DKINDS=" + ";".join(asked)]

        def check(name, prefix, asked, default):
            run(*configure(name, prefix, f"{major}.{minor}", asked), env=environment)
            run("cmake", "--build", str(work / name))
            for kind in [*asked, "brontes"]:
                program = work / name / f"consumer-{kind}"
                check_links(default if kind == "brontes" else kind, program)
                on_lavapipe(arguments.with_driver, program)  # CMake's own rpath finds the shared library

        check("all", everything, kinds, kinds[0])
        if len(kinds) == 2:
            static = everything.copy(work / "static-only", without=["libbrontes.so*"])
            check("static", static, ["static"], "static")
            if "shared library of Brontes is not installed" not in fails(
                    *configure("missing", static, arguments.version, ["shared"]), env=environment):
                sys.exit("the message does not say what is missing")

        for other in [f"{major}.{minor + 1}", f"{major + 1}.0", f"{major}.{minor}.{patch + 1}"]:
            fails(*configure(f"version-{other}", everything, other, kinds), env=environment)
        run(*configure("range", everything, f"{major}.{minor}...<{major + 1}", kinds), env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
