#!/usr/bin/env python3
"""Kernels for those who have no shader compiler: a release contains what kernelgen.py makes of them.

Usage: prebuilt_kernels.py store          as a script of `meson dist`: from the build directory into the release
       prebuilt_kernels.py check SOURCE   fails if the kernels of a source tree are not those that were prebuilt
"""
import hashlib
import os
import pathlib
import subprocess
import sys

GENERATED = pathlib.Path("kernels") / "generated"
FILES = ["kernels.hpp", "kernels.cpp"]
STAMP = "sources.sha256"


def fingerprint(source):
    """Of everything that the generated files depend on."""
    paths = [source / "lib" / "ops" / "ops.def", source / "tools" / "kernelgen.py"]
    paths += [path for path in (source / "kernels").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(paths):
        name = path.relative_to(source)
        if GENERATED in name.parents or "__pycache__" in name.parts:
            continue
        content = path.read_bytes()
        digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest() + "\n"


def store():
    source, build, release = (pathlib.Path(os.environ[f"MESON_PROJECT_{name}_ROOT"])
                              for name in ("SOURCE", "BUILD", "DIST"))
    stamp = fingerprint(release)
    if stamp != fingerprint(source):
        sys.exit("the kernels have changes that are not committed: the release would not match them")
    root = pathlib.Path(os.environ["MESON_BUILD_ROOT"])
    targets = [str((build / "kernels" / name).relative_to(root)) for name in FILES]
    subprocess.run(["ninja", "-C", str(root), "--quiet", *targets], check=True)
    if "matmul_coopmat_storage[]" not in (build / "kernels" / "kernels.cpp").read_text():
        sys.exit("the build has no kernel for matrix units, and a release has all of them: run tools/setup, configure again")
    target = release / GENERATED
    target.mkdir(exist_ok=True)
    for name in FILES:
        content = (build / "kernels" / name).read_bytes()
        if not (target / name).exists() or (target / name).read_bytes() != content:
            (target / name).write_bytes(content)
    (target / STAMP).write_text(stamp)


def check(source):
    if (source / GENERATED / STAMP).read_text() != fingerprint(source):
        sys.exit("The kernels differ from those that kernels/generated was made from. "
                 "Install glslang and SPIRV-Tools to compile them.")


if __name__ == "__main__":
    if sys.argv[1:] == ["store"]:
        store()
    elif len(sys.argv) == 3 and sys.argv[1] == "check":
        check(pathlib.Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
