#!/usr/bin/env python3
"""Installs the build into a staged prefix, moves that, and builds and runs small programs against it that know nothing
but pkg-config: with the shared library, with the static one while both are installed, and with the only one there is.
The installed command runs from there, too.

Usage: check_consumer.py --build DIR --source MAIN.CPP [--bare-source MAIN.CPP] [--c-source MAIN.C] --with-driver SCRIPT
       [--vulkan-source MAIN.CPP] [--loader LOADER.CPP] [--kinds shared,static] [--command NAME] --cxx COMPILER...

A bare source is compiled without exceptions. A C source is compiled and linked by the C compiler, which knows nothing of
the C++ runtime that a static library needs. A Vulkan source uses Vulkan itself, so it needs its headers and libdl. The
first program is run once more with the loader in place of the system's.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from staging import check_links, install, on_lavapipe, run


def check(name, kind, prefix, package, work, arguments, sources):
    flags = prefix.pkg_config("--cflags", package)
    libraries = prefix.pkg_config("--libs", package)
    if ("-DBRONTES_STATIC" in flags) != (kind == "static"):
        sys.exit(f"{package} must define BRONTES_STATIC where the library is static: {flags}")
    for source, compiler, *more in sources:
        program = work / f"{pathlib.Path(source).stem}-{name}"
        run(*compiler, "-Wall", "-Wextra", "-Werror", *flags, source, "-o", str(program), *libraries, *more)
        check_links(kind, program)
        on_lavapipe(arguments.with_driver, program, libdir=prefix.libdir if kind == "shared" else None)


def vulkan_headers():
    """Where the system has them, if not where every compiler looks."""
    found = subprocess.run(["pkg-config", "--cflags-only-I", "vulkan"], text=True, stdout=subprocess.PIPE)
    return found.stdout.split()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", action="append", required=True)
    parser.add_argument("--bare-source", action="append", default=[])
    parser.add_argument("--c-source", action="append", default=[])
    parser.add_argument("--vulkan-source", action="append", default=[])
    parser.add_argument("--loader")
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--kinds", default="shared,static")
    parser.add_argument("--command")
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    cxx = [*arguments.cxx, "-std=c++17"]
    plain = [(source, cxx) for source in arguments.source]
    plain += [(source, ["cc", "-std=c11", "-Wpedantic"]) for source in arguments.c_source]
    bare = [(source, [*cxx, "-fno-exceptions"]) for source in arguments.bare_source]
    vulkan = [(source, [*cxx, *vulkan_headers(), "-pthread"], "-ldl") for source in arguments.vulkan_source]

    with tempfile.TemporaryDirectory(prefix="brontes-consumer-") as folder:
        work = pathlib.Path(folder)
        prefix = install(arguments.build, work)
        if "shared" in kinds:
            check("shared", "shared", prefix, "brontes", work, arguments, plain + bare + vulkan)
        if "static" in kinds:
            check("static", "static", prefix, "brontes-static", work, arguments,
                  plain + bare + (vulkan if kinds == ["static"] else []))
        if kinds == ["static"]:
            check("only", "static", prefix, "brontes", work, arguments, plain)
        if arguments.loader:
            loader = work / "loader.so"
            run(*cxx, "-Wall", "-Wextra", "-Werror", *vulkan_headers(), "-shared", "-fPIC", "-DVK_NO_PROTOTYPES",
                arguments.loader, "-o", str(loader), "-ldl")
            on_lavapipe(arguments.with_driver, work / f"{pathlib.Path(arguments.source[0]).stem}-{kinds[0]}",
                        libdir=prefix.libdir, BRONTES_VULKAN_LIBRARY=str(loader), BRONTES_VALIDATION="0")
        if arguments.command:
            # No LD_LIBRARY_PATH: it knows where its library is.
            on_lavapipe(arguments.with_driver, prefix.root / "bin" / arguments.command, "devices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
