#!/usr/bin/env python3
"""Says which lines of lib/ the tests executed.

Usage: tools/coverage.py BUILD [--list]

BUILD is a build directory configured with -Db_coverage=true whose tests have run. Prints a line per file, the total,
and the lines that return an error and were never reached; with --list every line that was not executed.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ERROR_RETURN = re.compile(r"\breturn\s+(Error\(|\w*[eE]rror\b|e;|.*\.error\(\))")


def counts_of(build):
    """File -> line -> how often it ran, over every object that holds the line."""
    files = collections.defaultdict(lambda: collections.defaultdict(int))
    data = sorted(str(p.resolve()) for p in (build / "lib").rglob("*.gcda"))
    for start in range(0, len(data), 16):
        output = subprocess.run(["gcov", "--json-format", "--stdout", *data[start : start + 16]],
                                cwd=build, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        for document in output.decode().splitlines():
            for file in json.loads(document)["files"]:
                path = (build / file["file"]).resolve()
                if ROOT not in path.parents or build.resolve() in path.parents:
                    continue
                name = str(path.relative_to(ROOT))
                if not name.startswith("lib/"):
                    continue
                for line in file["lines"]:
                    files[name][line["line_number"]] += line["count"]
    return files


def percent(done, total):
    return 100.0 * done / total if total else 100.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    files = counts_of(arguments.build)
    if not files:
        sys.exit(f"coverage: {arguments.build} holds no coverage data; configure with -Db_coverage=true and run the tests")

    done = total = 0
    missed = []
    for name in sorted(files):
        lines = files[name]
        ran = sum(1 for count in lines.values() if count)
        done += ran
        total += len(lines)
        print(f"{percent(ran, len(lines)):6.1f} %  {ran:5} of {len(lines):5}  {name}")
        source = (ROOT / name).read_text().splitlines()
        missed += [(name, n, source[n - 1].strip()) for n, count in sorted(lines.items())
                   if count == 0 and n <= len(source)]
    errors = [m for m in missed if ERROR_RETURN.search(m[2])]
    shown = missed if arguments.list else errors
    print("\n" + ("Lines that no test executes:" if arguments.list else "Error returns that no test reaches:"))
    for name, number, text in shown:
        print(f"  {name}:{number}: {text}")
    print(f"\ncoverage: {percent(done, total):.1f} % of {total} lines, {len(errors)} error returns not reached")


if __name__ == "__main__":
    main()
