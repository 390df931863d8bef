#!/usr/bin/env python3
"""Installs the build into a staged prefix, and builds and runs small programs against it that know
nothing but pkg-config: once with the shared library, once with the static one.

Usage: check_consumer.py --build DIR --source MAIN.CPP [--bare-source MAIN.CPP] --with-driver SCRIPT
       --cxx COMPILER... [--kinds shared,static]

A bare source is compiled without exceptions.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run(command, check=True, text=True, **options)


def pkg_config(staging, libdir, *arguments):
    environment = dict(os.environ, PKG_CONFIG_LIBDIR=str(libdir / "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=str(staging))
    environment.pop("PKG_CONFIG_PATH", None)
    return run("pkg-config", *arguments, "brontes", env=environment, stdout=subprocess.PIPE).stdout.split()


def check(kind, staging, work, arguments):
    (found,) = staging.rglob("brontes.pc")
    libdir = found.parent.parent
    if kind == "static":
        # Beside a shared library -lbrontes would never take the static one.
        for shared in libdir.glob("libbrontes.so*"):
            shared.unlink()
    flags = pkg_config(staging, libdir, "--cflags")
    libraries = pkg_config(staging, libdir, "--libs", *(["--static"] if kind == "static" else []))
    environment = dict(os.environ)
    if kind == "shared":
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(libdir), os.environ.get("LD_LIBRARY_PATH")]))
    sources = [(source, []) for source in arguments.source]
    sources += [(source, ["-fno-exceptions"]) for source in arguments.bare_source]
    for source, extra in sources:
        program = work / f"{pathlib.Path(source).stem}-{kind}"
        run(*arguments.cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", *extra, *flags, source,
            "-o", str(program), *libraries)
        check_links(kind, program)
        done = subprocess.run([arguments.with_driver, "lavapipe", "--", str(program)], env=environment)
        if done.returncode != 0:
            print(f"{program.name} ended with status {done.returncode}")
            return done.returncode
    return 0


def check_links(kind, program):
    needed = run("readelf", "-d", str(program), stdout=subprocess.PIPE).stdout
    if ("libbrontes.so" in needed) != (kind == "shared"):
        sys.exit(f"the {kind} program links to the wrong library:\n{needed}")
    if "libvulkan" in needed:
        sys.exit(f"the {kind} program links to libvulkan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", action="append", required=True)
    parser.add_argument("--bare-source", action="append", default=[])
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--kinds", default="shared,static")
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="brontes-consumer-") as folder:
        work = pathlib.Path(folder)
        staging = work / "staging"
        run("meson", "install", "-C", arguments.build, "--no-rebuild", "--quiet", "--destdir", str(staging))
        for kind in arguments.kinds.split(","):
            copy = work / kind
            shutil.copytree(staging, copy, symlinks=True)
            status = check(kind, copy, work, arguments)
            if status != 0:
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
