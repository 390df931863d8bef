#!/usr/bin/env python3
"""Adds the op of docs/adding-an-op.md to a copy of the sources, builds it, and runs its cases on lavapipe.

Usage: check_recipe.py --source DIR --build DIR --with-driver SCRIPT --cxx COMPILER...

The copy and its build stay in the build directory, so that a later run builds only what has changed. The rows of the
elementwise recipe are compared with those of the library.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

# What the library and its cases are built from.
COPIED = ["kernels", "lib", "tools", "tests", "examples", "packaging", "subprojects", "meson.build", "meson_options.txt"]
SNIPPET = re.compile(r"\*\*\d\. [^\n]*\*\*[^`]*`([^`]+)`.*?^```[a-z]+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def snippets(text):
    """(file, text) of every step of a recipe: a bold number and title, a file in code style, a fenced block."""
    return [(match[1], match[2]) for match in SNIPPET.finditer(text)]


def without_spaces(text):
    return "".join(text.split())


def check_rows(source, steps):
    return [f"{file} does not have the line of the recipe: {snippet.strip()}" for file, snippet in steps
            if without_spaces(snippet) not in without_spaces((source / file).read_text(encoding="utf-8"))]


def with_op(source, steps):
    """What the files of the recipe look like with the op, by their names."""
    files = {}
    for file, snippet in steps:
        path = source / file
        if not path.exists():
            files[file] = snippet
        elif path.name == "ops.def":
            files[file] = path.read_text(encoding="utf-8") + snippet
        elif path.name == "batch.hpp":
            before = "  // --- Outputs"
            head, mark, tail = path.read_text(encoding="utf-8").partition(before)
            indented = "".join(f"  {line}\n" for line in snippet.splitlines())
            files[file] = head + indented + "\n" + mark + tail
            if not mark:
                sys.exit(f"{file} has no line '{before.strip()}', where the declaration would go")
        elif path.name == "brontes.h":
            before = "/* --- Recording: outputs"
            head, mark, tail = path.read_text(encoding="utf-8").partition(before)
            files[file] = head + snippet + "\n" + mark + tail
            if not mark:
                sys.exit(f"{file} has no line '{before}', where the declaration would go")
        elif path.parts[-2:] == ("capi", "ops.cpp"):
            files[file] = path.read_text(encoding="utf-8") + "\n" + snippet
        else:
            sys.exit(f"docs/adding-an-op.md: {file} is in the library already")
    return files


def write(path, content):
    """Leaves a file alone that has this content, so that it is not built again."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def copy(source, target, changed):
    wanted = {}
    for name in COPIED:
        top = source / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            parts = path.relative_to(source).parts
            if not path.is_file() or "__pycache__" in parts or "packagecache" in parts:
                continue
            wanted[path.relative_to(source)] = path
    changes = {pathlib.Path(name): text.encode() for name, text in changed.items()}
    for path in list(target.rglob("*")):
        name = path.relative_to(target)
        if path.is_file() and name not in wanted and name not in changes:
            path.unlink()
    for name, path in wanted.items():
        if name not in changes:
            write(target / name, path.read_bytes())
            shutil.copymode(path, target / name)
    for name, content in changes.items():
        write(target / name, content)


def configure(arguments, source, build):
    if (build / "build.ninja").exists():
        return
    shutil.rmtree(build, ignore_errors=True)
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", arguments.build], check=True,
                                        stdout=subprocess.PIPE, text=True).stdout)
    values = {option["name"]: option["value"] for option in options}
    # Neither optimised nor with symbols: this is about what compiles, and the cases are few.
    subprocess.run(["meson", "setup", str(build), str(source), f"--wrap-mode={values['wrap_mode']}",
                    f"--pkg-config-path={','.join(values['pkg_config_path'])}", "--buildtype=plain",
                    "-Ddefault_library=static", "-Dtests=true", "-Dtools=false", "-Dbenchmarks=false", "-Dwerror=true"],
                   env=dict(os.environ, CXX=" ".join(arguments.cxx)), check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()

    text = (arguments.source / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
    rows, _, own_kernel = text.partition("\n## An op with a kernel of its own\n")
    row_steps, steps = snippets(rows), snippets(own_kernel)
    if len(row_steps) != 5 or len(steps) != 7:
        sys.exit(f"docs/adding-an-op.md: found {len(row_steps)} and {len(steps)} steps, expected 5 and 7")
    for problem in (problems := check_rows(arguments.source, row_steps)):
        print(problem)

    scratch = pathlib.Path(arguments.build) / "recipe"
    source, build = scratch / "source", scratch / "build"
    copy(arguments.source, source, with_op(arguments.source, steps))
    configure(arguments, source, build)
    subprocess.run(["ninja", "-C", str(build), "--quiet", "tests/recipe/run-cases"], check=True)
    room = next(pathlib.Path(file).stem for file, _ in steps if file.startswith("lib/ops/"))
    done = subprocess.run([arguments.with_driver, "lavapipe", "--", str(build / "tests" / "recipe" / "run-cases"), room])
    return 1 if problems else done.returncode


if __name__ == "__main__":
    sys.exit(main())
