"""Usage: check_gate.py REGRESSING_BENCH

Runs a benchmark for real, as it is and made worse on purpose, and checks that `compare` and `--against` tell one from
the other: 20 comparisons of a build with itself pass, and one more barrier, one more allocation and a kernel that takes
1.5 times as long do not.

Exit status 77, which Meson reads as skipped, when all of that holds but the last, on a machine where runs of one build
differ by more than the half of it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

program = sys.argv[1]
problems = []
unclear = []

# How far the median of the runs may be from the fastest. Above that half of the runs of one build were disturbed by half
# of the difference that is looked for, and nobody can promise to find it.
MOST_NOISE = 0.25

COMPARISONS = 20
RUNS = COMPARISONS + 9


def expect(condition, message):
    if not condition:
        problems.append(message)


def run(*arguments, regress=""):
    environment = dict(os.environ, BENCH_TEST_REGRESS=regress)
    return subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment)


def noise_of(report):
    minima = sorted(entry["min"] for entry in report["cases"][0]["runs"])
    return minima[len(minima) // 2] / minima[0] - 1


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    base = folder / "base.json"
    done = run("--repeat", RUNS, "--budget", 0.1, "--json", base)
    expect(done.returncode == 0, f"the benchmark fails: {done.stdout}")
    report = json.loads(base.read_text(encoding="utf-8"))
    runs = report["cases"][0]["runs"]
    expect(len(runs) == RUNS, f"{len(runs)} runs instead of {RUNS}")

    # Ten runs that follow each other are what two builds would have had, five each in turn.
    def share(chosen, path):
        report["cases"][0]["runs"] = chosen
        path.write_text(json.dumps(report), encoding="utf-8")

    old, new = folder / "old.json", folder / "new.json"
    for first in range(COMPARISONS):
        turns = list(zip("ABBAABBAAB", runs[first:]))
        share([entry for build, entry in turns if build == "A"], old)
        share([entry for build, entry in turns if build == "B"], new)
        done = run("compare", old, new)
        expect(done.returncode == 0, f"a comparison with itself fails, {first}: {done.stdout}")

    # All of them at once, which is enough for ranks to decide.
    share(runs[0:28:4] + runs[3:28:4], old)
    share(runs[1:28:4] + runs[2:28:4], new)
    done = run("compare", old, new)
    expect(done.returncode == 0, f"a comparison of 14 runs with 14 of the same build fails: {done.stdout}")

    for regress, count in (("barrier", "barriers"), ("device-allocation", "device_allocations"),
                           ("host-allocation", "host_allocations")):
        worse = folder / f"{regress}.json"
        markdown = folder / f"{regress}.md"
        done = run("--quick", "--json", worse, regress=regress)
        expect(done.returncode == 0, f"{regress}: the benchmark fails: {done.stdout}")
        done = run("compare", base, worse, "--markdown", markdown)
        expect(done.returncode == 3, f"{regress}: exit status {done.returncode}, expected 3: {done.stdout}")
        expect(f"GREW    gate/tanh/6/op: {count} " in done.stdout, f"{regress}: {count} is not named: {done.stdout}")
        expect(f"| **grew** | `gate/tanh/6/op` | {count} " in markdown.read_text(encoding="utf-8"),
               f"{regress}: not in the summary")
        if regress == "barrier":
            expect("+ barrier RAW" in done.stdout, f"the line of the dump is not shown: {done.stdout}")

    # A B B A: this build is slower than the other, and the other way round.
    for own, other, status, word in (("slow", "", 3, "SLOWER"), ("", "slow", 0, "faster")):
        other_program = folder / "other"
        other_program.write_text(f"#!/bin/sh\nBENCH_TEST_REGRESS={other} exec '{program}' \"$@\"\n", encoding="utf-8")
        other_program.chmod(0o755)
        files = folder / "own.json", folder / "other.json"
        done = run("run", "--repeat", 5, "--budget", 0.3, "--against", other_program, "--json", files[0],
                   "--against-json", files[1], regress=own)
        reports = [json.loads(path.read_text(encoding="utf-8")) for path in files]
        expect(all(r["interleaved"] for r in reports), "the files do not say that they are interleaved")
        found = done.returncode == status and f"{word}  gate/tanh/6/op" in done.stdout
        if not found and max(map(noise_of, reports)) > MOST_NOISE:
            unclear.append(done.stdout)
            continue
        expect(done.returncode == status, f"{word}: exit status {done.returncode}, expected {status}: {done.stdout}")
        expect(f"{word}  gate/tanh/6/op" in done.stdout, f"{word} is not said: {done.stdout}")
        print(f"check_gate: {word} after {len(reports[0]['cases'][0]['runs'])} runs of each build")

    for arguments in (["compare"], ["compare", base], ["compare", base, base, base], ["compare", base, folder / "none"],
                      ["compare", base, base, "--threshold", "much"], ["compare", base, base, "--nonsense"],
                      ["compare", base, __file__], ["compare", base, base, "--markdown", "no-such-folder/x.md"],
                      ["report"], ["report", folder / "none"], ["run", "--repeat", "0"], ["run", "--markdown", "x.md"]):
        done = run(*arguments)
        expect(done.returncode == 2, f"{arguments}: exit status {done.returncode}, expected 2")
        expect("brontes-bench: " in done.stdout, f"{arguments}: does not say what is wrong")

for problem in problems:
    print(f"check_gate: {problem}", file=sys.stderr)
for text in unclear:
    print(f"check_gate: SKIPPED: this machine is too noisy to tell 1.5 times from noise:\n{text}", file=sys.stderr)
sys.exit(1 if problems else 77 if unclear else 0)
