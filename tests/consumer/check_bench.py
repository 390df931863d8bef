#!/usr/bin/env python3
"""Installs the build into a staged prefix, moves that, and builds a benchmark of an application's own against it, which
knows nothing but pkg-config. It must count, write and compare as brontes-bench does.

Usage: check_bench.py --build DIR --source BENCH.CPP --with-driver SCRIPT --cxx COMPILER...
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from staging import install, on_lavapipe, run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--with-driver", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="brontes-bench-") as folder:
        work = pathlib.Path(folder)
        prefix = install(arguments.build, work)
        program, report = work / "image-bench", work / "image.json"
        run(*arguments.cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror",
            *prefix.pkg_config("--cflags", "brontes-bench"), arguments.source, "-o", str(program),
            *prefix.pkg_config("--libs", "brontes-bench"))

        def bench(*options):
            on_lavapipe(arguments.with_driver, program, *options, libdir=prefix.libdir)

        bench("--list")
        bench("run", "--quick", "--repeat", "2", "--commit", "of-the-application", "--json", str(report),
              "--google", str(work / "google.json"), "--against", str(program))
        found = json.loads(report.read_text(encoding="utf-8"))
        cases = {case["name"]: case for case in found["cases"]}
        assert found["commit"] == "of-the-application", found["commit"]
        assert set(cases) == {"image/brighten/64x64/batch", "image/brighten/64x64/program"}, cases.keys()
        counts = cases["image/brighten/64x64/batch"]["counts"]
        assert counts["submits"] == 1 and counts["dispatches"] == 1 and counts["bytes_up"] == 4 * 64 * 64, counts
        assert cases["image/brighten/64x64/program"]["counts"]["host_allocations"] == 0, cases
        assert "plan:" in cases["image/brighten/64x64/batch"]["dump"]
        assert len(cases["image/brighten/64x64/batch"]["runs"]) == 2

        # The gate: what was one submit is two.
        worse = work / "worse.json"
        found["cases"][0]["counts"]["submits"] += 1
        worse.write_text(json.dumps(found), encoding="utf-8")
        environment = dict(os.environ, LD_LIBRARY_PATH=str(prefix.libdir))
        for old, new, status in ((report, report, 0), (report, worse, 3), (worse, report, 0)):
            done = subprocess.run([str(program), "compare", str(old), str(new)], env=environment, text=True,
                                  stdout=subprocess.PIPE)
            assert done.returncode == status, (old, new, done.returncode, done.stdout)
        # The installed command knows where its library is.
        on_lavapipe(arguments.with_driver, prefix.root / "bin" / "brontes-bench", "compare", report, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
