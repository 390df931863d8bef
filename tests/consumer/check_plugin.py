#!/usr/bin/env python3
"""A host with the shared library loads a plug-in with the static one. Not one symbol of the plug-in may be bound to
the library of the host, the plug-in exports nothing of Brontes, and dlclose() unmaps it.

Usage: check_plugin.py --build DIR --with-driver SCRIPT --cxx COMPILER...
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from staging import check_links, install, on_lavapipe, run

BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `([^']*)'")

# Namespace brontes and the C functions. What std:: makes of our types is the plug-in's own.
OURS = re.compile(r"_Z(T[VTIS]|GV)?N[rVK]*[RO]?7brontes|brontes_")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()
    here = pathlib.Path(__file__).parent
    problems = []

    with tempfile.TemporaryDirectory(prefix="brontes-plugin-") as folder:
        work = pathlib.Path(folder)
        prefix = install(arguments.build, work)
        host = work / "host"
        run(*arguments.cxx, "-std=c++17", *prefix.pkg_config("--cflags", "brontes"), str(here / "host.cpp"),
            "-o", str(host), *prefix.pkg_config("--libs", "brontes"), "-ldl")
        check_links("shared", host)

        # With and without the option that well-kept plug-ins are built with.
        for name, options in {"hidden": ["-fvisibility=hidden"], "plain": []}.items():
            plugin = work / f"plugin-{name}.so"
            run(*arguments.cxx, "-std=c++17", "-Wall", "-Werror", "-fPIC", "-shared", *options,
                *prefix.pkg_config("--cflags", "brontes-static"), str(here / "plugin.cpp"), "-o", str(plugin),
                *prefix.pkg_config("--libs", "brontes-static"))
            check_links("static", plugin)
            symbols = run("nm", "-D", "--defined-only", str(plugin), stdout=subprocess.PIPE).stdout.split("\n")
            exported = [line.split()[-1] for line in symbols if line]
            unique = [line.split()[-1] for line in symbols if " u " in line]
            if unique:
                problems.append(f"{plugin.name} has unique symbols, which keep it loaded: {unique}")
            ours = [symbol for symbol in exported if OURS.match(symbol)]
            if name == "hidden" and ours:
                problems.append(f"{plugin.name} exports names of Brontes: {ours}")
            if "plugin_run" not in exported:
                problems.append(f"{plugin.name} does not export its own function")

            log = work / f"bindings-{name}"
            on_lavapipe(arguments.with_driver, host, plugin, libdir=prefix.libdir, LD_DEBUG="bindings",
                        LD_DEBUG_OUTPUT=str(log))
            bindings = [binding for file in work.glob(f"bindings-{name}.*")
                        for binding in BINDING.findall(file.read_text(errors="replace"))]
            own = [binding for binding in bindings if pathlib.Path(binding[0]).name == host.name]
            if not any("libbrontes" in to for _, to, _ in own):
                problems.append("the log of bindings does not show the host's use of its library")
            across = [symbol for of, to, symbol in bindings
                      if ("libbrontes" in to and pathlib.Path(of).name == plugin.name) or
                      (pathlib.Path(to).name == plugin.name and "libbrontes" in of)]
            if across:
                problems.append(f"{len(across)} symbols are bound across: {across}")
            print(f"{plugin.name}: {len(exported)} exported, {len(across)} bound across", flush=True)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
