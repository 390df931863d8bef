"""Usage: check_instructions.py BRONTES_BENCH

Has valgrind count the instructions of cases that are about the host, twice, and checks that they come out the same,
that `compare` takes them for counts, and that Bencher's format has them. Exit status 77 without valgrind.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

program = sys.argv[1]
problems = []
CASES = {"dispatch/tiny-ops/100/compile", "dispatch/tiny-ops/100/record", "dispatch/tiny-ops/100/replay"}


def expect(condition, message):
    if not condition:
        problems.append(message)


def run(*arguments):
    return subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


if not shutil.which("valgrind"):
    print("skipped: there is no valgrind")
    sys.exit(77)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    counted = []
    for which in ("first", "second"):
        done = run("run", "--quick", "--instructions", "--filter", "^dispatch/tiny-ops/100/(compile|record|replay)$",
                   "--json", folder / f"{which}.json", "--bencher", folder / f"{which}.bencher")
        expect(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
        if "built without the headers of valgrind" in done.stderr:
            print("skipped: built without the headers of valgrind")
            sys.exit(77)
        report = json.loads((folder / f"{which}.json").read_text(encoding="utf-8"))
        counted.append({case["name"]: case.get("host_instructions", 0) for case in report["cases"]})
        expect("dispatch/tiny-ops/100/record: " in done.stdout, f"not printed: {done.stdout}")
    print(counted)
    first, second = counted
    expect(set(first) == CASES and all(first.values()), f"not counted: {first} {done.stderr}")
    for case in CASES:
        # A wait that wakes up once more costs some, however little the rest is.
        expect(abs(first[case] - second[case]) < max(500, 0.02 * first[case]),
               f"{case}: {first[case]}, and then {second[case]}")
    # Planning and encoding cost more than recording, and to run a program again costs next to nothing.
    expect(first["dispatch/tiny-ops/100/compile"] > first["dispatch/tiny-ops/100/record"] >
           first["dispatch/tiny-ops/100/replay"], f"an odd order: {first}")
    bencher = json.loads((folder / "first.bencher").read_text(encoding="utf-8"))
    expect(all(bencher[case]["host_instructions"]["value"] == first[case] for case in CASES), "--bencher lacks them")

    same = run("compare", folder / "first.json", folder / "second.json")
    expect(same.returncode == 0, f"a build differs from itself: {same.stdout}")
    for case in report["cases"]:
        case["host_instructions"] = first[case["name"]] * 21 // 20 + 500
    (folder / "worse.json").write_text(json.dumps(report), encoding="utf-8")
    worse = run("compare", folder / "first.json", folder / "worse.json")
    expect(worse.returncode == 3 and worse.stdout.count(": host_instructions ") == len(CASES),
           f"five percent more are not found: {worse.stdout}")

for problem in problems:
    print(f"check_instructions: {problem}", file=sys.stderr)
sys.exit(1 if problems else 0)
