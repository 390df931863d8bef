#!/usr/bin/env python3
"""tools/abi on a small library, and on a part of Brontes: changes that break programs are found, others are not.

Usage: check_abi.py --tool TOOLS_ABI --source SOURCE_ROOT --build BUILD_ROOT --cxx COMPILER...
"""
import argparse
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HEADER = """
namespace shop {
enum class Colour { red, green, blue };
struct Options { int size = 1; Colour colour = Colour::red; };
int price(const Options& options);
void close();
}
"""
SOURCE = """
#include "shop.hpp"
namespace shop {
namespace { struct Hidden { int a = 1, b = 2; } hidden; }
int price(const Options& options) { return options.size * (options.colour == Colour::green ? 2 : 1) * hidden.b; }
void close() { hidden = {}; }
}
"""

# Name, what is replaced in header and source, soname, the status of tools/abi.
CHANGES = [
    ("nothing", [], "libshop.so.1", 0),
    ("a private struct has grown", [("int a = 1, b = 2;", "int a = 1, b = 2, c = 3;")], "libshop.so.1", 0),
    ("a function was added", [("void close();", "void close(); int count();"),
                              ("void close() {", "int count() { return 1; }\nvoid close() {")], "libshop.so.1", 0),
    ("a function is gone", [("void close();", ""), ("void close() { hidden = {}; }", "")], "libshop.so.1", 1),
    ("a struct has grown", [("int size = 1;", "int size = 1; int count = 1;")], "libshop.so.1", 1),
    ("enumerators are numbered anew", [("red, green", "white, red, green")], "libshop.so.1", 1),
    ("a struct has grown, and the soname is another", [("int size = 1;", "int size = 1; int count = 1;")],
     "libshop.so.2", 0),
]


# The same of Brontes itself: file below lib/, what is replaced in it.
PART = "api/device.cpp"
BRONTES_CHANGES = [
    ("nothing", [], 0),
    ("a private class has grown", [("engine/engine.hpp", "std::shared_ptr<vk::Context> context_;",
                                    "std::shared_ptr<vk::Context> context_; long added_ = 0;")], 0),
    ("DeviceOptions has grown", [("include/brontes/device.hpp", "  bool allow_cpu = true;",
                                  "  bool allow_cpu = true;\n  double added = 0;")], 1),
    ("AccessMode is numbered anew", [("include/brontes/device.hpp", "  storage,", "  other,\n  storage,")], 1),
]


def run_tool(tool, description, headers, library, *options):
    done = subprocess.run([tool, "--description", str(description), "--headers", str(headers), *options, str(library)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"status {done.returncode}\n{done.stdout}", flush=True)
    return done


def check_shop(tool, compiler, folder):
    wrong = []
    library, description = folder / "libshop.so", folder / "shop.abi.xz"

    def build(changes, soname):
        header, source = HEADER, SOURCE
        for old, new in changes:
            header, source = header.replace(old, new), source.replace(old, new)
        (folder / "shop.hpp").write_text(header)
        (folder / "shop.cpp").write_text(source)
        subprocess.run([*compiler, "-g", "-shared", "-fPIC", f"-Wl,-soname,{soname}", str(folder / "shop.cpp"),
                        "-o", str(library)], check=True)

    def run(*options):
        return run_tool(tool, description, folder, library, *options)

    build([], "libshop.so.1")
    if run().returncode != 77:
        wrong.append("no description")
    if run("--write").returncode != 0 or not description.is_file():
        wrong.append("--write")
    for title, changes, soname, expected in CHANGES:
        print(f"-- {title}", flush=True)
        build(changes, soname)
        done = run()
        if done.returncode != expected or (expected == 1 and f"tools/abi --write {library}" not in done.stdout):
            wrong.append(title)
    return wrong


def check_brontes(tool, source, build, folder):
    """One file of the library is enough to reach the public structs in it, and quick to compile."""
    wrong = []
    commands = json.loads((build / "compile_commands.json").read_text())
    file = next(c for c in commands if c["file"].endswith(f"lib/{PART}") and "brontes-objects" in c["output"])
    compile_it = [word for word in shlex.split(file["command"]) if word != "ccache"]
    for option in ("-o", "-MF", "-MQ"):
        at = compile_it.index(option)
        del compile_it[at:at + 2]
    library, description = folder / "libpart.so", folder / "part.abi.xz"
    for title, changes, expected in BRONTES_CHANGES:
        print(f"-- Brontes: {title}", flush=True)
        tree = folder / "lib"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(source / "lib", tree)
        for name, old, new in changes:
            text = (tree / name).read_text()
            if text.count(old) != 1:
                sys.exit(f"{name} does not have this once, so the test has to be mended: {old}")
            (tree / name).write_text(text.replace(old, new))
        # Paths of the build are relative to its root; those below lib/ are of the copy.
        command = [word.replace("../../lib", str(tree)) for word in compile_it]
        if command == compile_it:
            command = [word.replace(str(source / "lib"), str(tree)) for word in compile_it]
        subprocess.run([*command, "-O0", "-w", "-o", str(folder / "part.o")], check=True, cwd=file["directory"])
        subprocess.run([compile_it[0], "-shared", "-Wl,-soname,libpart.so.1", str(folder / "part.o"), "-o",
                        str(library)], check=True)
        if not description.exists():
            run_tool(tool, description, tree / "include", library, "--write")
        if run_tool(tool, description, tree / "include", library).returncode != expected:
            wrong.append(f"Brontes: {title}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()
    if shutil.which("abidiff") is None or shutil.which("abidw") is None:
        print("there is no abidiff (Debian: abigail-tools)")
        return 77
    with tempfile.TemporaryDirectory(prefix="brontes-abi-") as name:
        folder = pathlib.Path(name)
        wrong = check_shop(arguments.tool, arguments.cxx, folder)
        wrong += check_brontes(arguments.tool, arguments.source, arguments.build, folder)
    for title in wrong:
        print(f"wrong: {title}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
