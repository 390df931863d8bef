#!/usr/bin/env python3
"""tools/abi on a small library: changes that break programs are found, others are not.

Usage: check_abi.py TOOLS_ABI CXX...
"""
import pathlib
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


def main():
    tool, *compiler = sys.argv[1:]
    if shutil.which("abidiff") is None or shutil.which("abidw") is None:
        print("there is no abidiff (Debian: abigail-tools)")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
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
            done = subprocess.run([tool, "--description", str(description), "--headers", str(folder), *options,
                                   str(library)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            print(f"status {done.returncode}\n{done.stdout}")
            return done.returncode

        build([], "libshop.so.1")
        if run() != 77:
            wrong.append("no description")
        if run("--write") != 0 or not description.is_file():
            wrong.append("--write")
        for title, changes, soname, expected in CHANGES:
            print(f"-- {title}")
            build(changes, soname)
            if run() != expected:
                wrong.append(title)
    for title in wrong:
        print(f"wrong: {title}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
