"""Usage: check_recipe.py DOCUMENT REGRESSING_BENCH

Runs the steps of the CI recipes in docs/benchmarking.md, as far as they need neither packages nor a repository, with a
benchmark in the place of the application's: on a build against itself, where they must pass, and against one with a
barrier less, where they must not.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

document, program = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), str(pathlib.Path(sys.argv[2]).resolve())
problems = []
ELSEWHERE = re.compile(r"^(sudo |apt-get |git |meson )")


def commands(block):
    """The shell lines of a workflow: those of `run: |`, or the items of `script:`."""
    lines = block.splitlines()
    for at, line in enumerate(lines):
        found = re.match(r"^( *)(?:- )?(run: \||script:)$", line)
        if not found:
            continue
        for inner in lines[at + 1:]:
            if len(inner) - len(inner.lstrip()) <= len(found[1]):
                break
            yield inner.strip().removeprefix("- ")


def bench(path, regress):
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\nBENCH_TEST_REGRESS={regress} exec '{program}' \"$@\"\n", encoding="utf-8")
    path.chmod(0o755)


recipes = [list(commands(block)) for block in re.findall(r"^```yaml\n(.*?)^```", document, re.MULTILINE | re.DOTALL)]
if len(recipes) != 2 or not all(recipes):
    sys.exit(f"expected two recipes with commands, found {recipes}")
for recipe in recipes:
    steps = [line for line in recipe if not ELSEWHERE.match(line)]
    if not any("--against" in step for step in steps):
        sys.exit(f"no step compares: {steps}")
    for regress, status in (("", 0), ("barrier", 3)):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            bench(folder / "build" / "image-bench", regress)
            bench(folder / "base" / "build" / "image-bench", "")
            environment = dict(os.environ, GITHUB_STEP_SUMMARY=str(folder / "step-summary"))
            for step in steps:
                # For the sake of time; everything else is as in the recipe.
                shorter = step.replace("run --repeat 5", "run --quick --repeat 5")
                done = subprocess.run(["sh", "-ec", shorter], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
                expected = status if "--against " in step else 0
                if done.returncode != expected:
                    problems.append(f"{step}: exit status {done.returncode}, expected {expected}:\n{done.stdout}")
            for artifact in ("benchmarks.html", "new.json"):
                if not (folder / artifact).exists():
                    problems.append(f"no {artifact}")
            if any("GITHUB_STEP_SUMMARY" in step for step in steps):
                summary = (folder / "step-summary").read_text(encoding="utf-8")
                wanted = "regression" if status == 3 else "no regression"
                if f"### Benchmarks: {wanted}" not in summary:
                    problems.append(f"the summary does not say {wanted}: {summary}")

for problem in problems:
    print(f"check_recipe: {problem}", file=sys.stderr)
sys.exit(1 if problems else 0)
