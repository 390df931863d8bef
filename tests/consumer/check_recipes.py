#!/usr/bin/env python3
"""The recipes of packaging/ have the version and options of the project, and their files parse. Building with them
takes vcpkg and Conan, and the network.

Usage: check_recipes.py SOURCE VERSION
"""
import ast
import configparser
import json
import pathlib
import re
import sys


def main():
    source, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    packaging = source / "packaging"
    problems = []

    def expect(what, got, want):
        if got != want:
            problems.append(f"{what} is {got!r}, not {want!r}")

    port = json.loads((packaging / "vcpkg" / "vcpkg.json").read_text())
    expect("the version of packaging/vcpkg/vcpkg.json", port["version"], version)

    recipe = (packaging / "conan" / "conanfile.py").read_text()
    conan = next(node for node in ast.parse(recipe).body if isinstance(node, ast.ClassDef))
    fields = {node.targets[0].id: node.value.value for node in conan.body
              if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}
    expect("the version of packaging/conan/conanfile.py", fields.get("version"), version)
    for folder in re.findall(r'"([a-z]+)"', re.search(r"for folder in \((.*?)\)", recipe, re.DOTALL)[1]):
        if not (source / folder).is_dir():
            problems.append(f"packaging/conan/conanfile.py exports {folder}, which is not there")
    needed = re.findall(r"^subdir\('(\w+)'\)", (source / "meson.build").read_text(), re.MULTILINE)
    problems += [f"packaging/conan/conanfile.py does not export {folder}" for folder in needed
                 if f'"{folder}"' not in recipe]

    wrap = configparser.ConfigParser()
    wrap.read_string((packaging / "brontes.wrap.in").read_text())
    expect("the folder of packaging/brontes.wrap.in", wrap["wrap-file"]["directory"], "brontes-@version@")
    expect("what packaging/brontes.wrap.in provides", dict(wrap["provide"]), {"brontes": "brontes_dep"})

    known = set(re.findall(r"^option\('(\w+)'", (source / "meson_options.txt").read_text(), re.MULTILINE))
    used = set(re.findall(r"-D(\w+)=", (packaging / "vcpkg" / "portfile.cmake").read_text()))
    used |= set(re.findall(r"(\w+)=", re.search(r"project_options\.update\((.*)\)", recipe)[1]))
    problems += [f"a recipe sets the option {name}, which there is not" for name in sorted(used - known)]

    changelog = re.findall(r"^## (\d+\.\d+\.\d+)", (source / "CHANGELOG.md").read_text(), re.MULTILINE)
    expect("the newest version of CHANGELOG.md", changelog[:1], [version])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
