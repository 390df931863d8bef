#!/usr/bin/env python3
"""Brontes as a Meson subproject, out of a release and on a machine without glslang and SPIRV-Tools: the parent is
built, runs, and installs nothing but its own program, unless it asks for the library.

Usage: check_subproject.py --source DIR --build DIR --with-driver SCRIPT --cxx COMPILER...

The trees stay in the build directory, so that a later run builds only what has changed.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

from staging import check_links, fails, on_lavapipe, run

sys.path.append(str(pathlib.Path(__file__).parent.parent / "recipe"))
from check_recipe import copy, write  # noqa: E402

HIDDEN = ("glslang", "spirv-")


def release(arguments, target):
    """The sources with prebuilt kernels in them, as `meson dist` leaves them."""
    kept = {f"kernels/generated/{path.name}": path for path in (target / "kernels" / "generated").glob("*")}
    copy(arguments.source, target, {name: path.read_text() for name, path in kept.items()})
    run(str(arguments.source / "tools" / "prebuilt_kernels.py"), "store",
        env=dict(os.environ, MESON_PROJECT_SOURCE_ROOT=str(arguments.source), MESON_PROJECT_DIST_ROOT=str(target),
                 MESON_PROJECT_BUILD_ROOT=arguments.build, MESON_BUILD_ROOT=arguments.build))


def path_without_shader_compiler(folder):
    """A PATH with links to every program but those."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in pathlib.Path(directory).glob("*"):
            link = folder / program.name
            if not program.name.startswith(HIDDEN) and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()
    here = pathlib.Path(__file__).parent
    scratch = pathlib.Path(arguments.build) / "subproject"
    parent, build = scratch / "parent", scratch / "build"

    subproject = parent / "subprojects" / "brontes"
    release(arguments, subproject)
    for file in [here / "parent" / "meson.build", here / "main.cpp", here / "vulkan.cpp"]:
        write(parent / file.name, file.read_bytes())
    # The wraps of a subproject's subprojects are found in the parent's folder; the trees are there already.
    for tree in (arguments.source / "subprojects").iterdir():
        link = parent / "subprojects" / tree.name
        if not link.exists() and tree.name != "packagecache":
            link.symlink_to(tree)

    environment = dict(os.environ, CXX=" ".join(arguments.cxx), PATH=path_without_shader_compiler(scratch / "path"))
    for program in ("glslangValidator", "spirv-opt", "spirv-val"):
        if shutil.which(program, path=environment["PATH"]):
            sys.exit(f"{program} is not hidden")
    setup = ["meson", "setup", "--wrap-mode=nodownload", "--buildtype=plain"]
    if not (build / "build.ninja").exists():
        shutil.rmtree(build, ignore_errors=True)
        run(*setup, str(build), str(parent), env=environment, stdout=subprocess.DEVNULL)
    run("ninja", "-C", str(build), "--quiet", env=environment)
    for name in ("parent", "parent-vulkan"):
        check_links("static", build / name)
        on_lavapipe(arguments.with_driver, build / name)

    def installed(tree):
        plan = subprocess.run(["meson", "introspect", "--installed", str(tree)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        return sorted(pathlib.Path(path).name for path in json.loads(plan).values())

    if installed(build) != ["parent"]:
        sys.exit(f"the parent installs more than its program: {installed(build)}")
    asked = scratch / "asked"
    shutil.rmtree(asked, ignore_errors=True)
    run(*setup, "-Dbrontes:install=enabled", str(asked), str(parent), env=environment, stdout=subprocess.DEVNULL)
    missing = {"brontes", "parent", "batch.hpp", "brontes.pc", "brontes-config.cmake"} - set(installed(asked))
    if missing:
        sys.exit(f"the library was asked for, but these are not installed: {missing}")

    # Kernels that are not those of the release are no silent mistake.
    changed = scratch / "changed"
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(subproject, changed, symlinks=True)
    with open(changed / "kernels" / "elementwise.def", "a", encoding="utf-8") as file:
        file.write("// changed\n")
    said = fails(*setup, "-Dtests=false", str(scratch / "changed-build"), str(changed), env=environment)
    if "The kernels differ" not in said:
        sys.exit(f"the message does not say what is wrong:\n{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
