"""Usage: check_smoke.py BRONTES_BENCH

Runs brontes-bench briefly and checks its contract: exit statuses, case names, and the JSON it writes.
Says nothing about how fast anything is.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

program = sys.argv[1]
problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


def run(*arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


for arguments in (["--nonsense"], ["--filter"], ["--filter", "("], ["--filter", "no-such-case"], ["--budget", "soon"],
                  ["--json", "no-such-folder/report.json"], ["stray"]):
    done = run(*arguments)
    expect(done.returncode == 2, f"{arguments}: exit status {done.returncode}, expected 2")
    expect("brontes-bench: " in done.stderr, f"{arguments}: says nothing on stderr")
help_text = run("--help")
expect(help_text.returncode == 0 and "--filter REGEX" in help_text.stdout, "--help does not help")

names = run("--list").stdout.split()
expect(len(names) == len(set(names)), "case names are not unique")
for name in ("chain/relu-scale-add/1000000/batch", "chain/relu-scale-add/1000/one-shot",
             "dispatch/tiny-ops/1000/one-batch", "dispatch/tiny-ops/1000/one-submit-each",
             "elementwise/add/16000000/resident", "matmul/1x4096x4096/nk/auto", "matmul/1024x1024x1024/kn/openblas",
             "matmul-batched/32x128x64x128/nk/batched", "matmul-batched/12x1x64x1024/nk/loop",
             "matmul-cache/resident/1x4096x4096/cached", "matmul-cache/types/1x4096x4096/q4_0-9MiB",
             "raw/one-op/64/raw", "raw/tiny-ops/1000/batch", "raw/replay-1/64/replay",
             "transfer/upload/1000/write", "transfer/readback/1000000/read",
             "cold/elementwise/first-use", "cold/matmul/cached", "matmul/1024x1024x1024/kn/onednn",
             "ops/matmul/64x256x256/nk/op", "ops/matmul/64x256x256/nk/copy", "reduce/sum/16000000/resident"):
    expect(name in names, f"--list lacks {name}")



def on_terminal(*arguments):
    """What a terminal shows of stderr."""
    ours, theirs = os.openpty()
    child = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # what Linux says when the last writer is gone
        pass
    child.wait()
    os.close(ours)
    return shown.decode()


shown = on_terminal("--quick", "--filter", "^raw/(one-op|chain-3)/")
expect("1 of 2, 0:00, raw/one-op/64" in shown, f"a terminal does not see how far it is: {shown!r}")
expect(" of about " in shown and shown.endswith("\r\033[K"), f"no expected time, or the line stays: {shown!r}")
expect(" of " not in run("--quick", "--filter", "^raw/one-op/").stderr, "progress where there is no terminal")

suite = run("ops", "--list").stdout.split()
expect(suite and suite == [name for name in names if name.startswith("ops/")], "a suite by its name has other cases")

selection = ["--quick", "--filter", "^(chain|dispatch|ops|raw|transfer)/"]
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "report.json"
    done = run(*selection, "--json", str(path))
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    expect(done.returncode == 0, f"exit status {done.returncode}, expected 0")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"check_smoke: no JSON: {error}")

    # Ctrl-C: what is done is kept, and the file is whole.
    cut = pathlib.Path(folder) / "cut.json"
    cut.write_text("as before", encoding="utf-8")
    child = subprocess.Popen([program, "--json", str(cut), "elementwise", "matmul"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    for line in child.stdout:
        if line.startswith("elementwise/"):
            break
    expect(cut.read_text(encoding="utf-8") == "as before", "the file is touched before the run is over")
    child.send_signal(signal.SIGINT)
    child.stdout.read()
    expect(child.wait() == 130, f"interrupted: exit status {child.returncode}, expected 130")
    kept = json.loads(cut.read_text(encoding="utf-8"))
    expect(kept["complete"] is False and kept["cases"], "an interrupted run does not keep what is done")
    expect([p.name for p in pathlib.Path(folder).iterdir() if p.suffix == ".part"] == [], "a file was left behind")

    piped = run("--quick", "--filter", "^dispatch/tiny-ops/", "--json", "-")
    expect(json.loads(piped.stdout)["complete"] is True, "--json - does not write JSON to stdout")
    expect("dispatch/tiny-ops" in piped.stderr, "--json - lacks the table on stderr")

expect(report["complete"] is True and report["date"].endswith("Z"), "no date, or not complete")
expect(report["format"] == 1, "another format version")
for part, keys in {"device": ("name", "driver", "cpu_driver", "uuid"), "build": ("type", "compiler"),
                   "machine": ("cpu", "cpus", "simd", "load"), "openblas": ("available", "core"),
                   "onednn": ("available", "version"),
                   "limits": ("source", "gflop_per_s", "gb_per_s", "host_threads")}.items():
    for key in keys:
        expect(key in report[part], f"{part} lacks {key}")
expect(report["failed"] == [], f"failed: {report['failed']}")
expect(report["limits"]["source"] == "host" and report["limits"]["gflop_per_s"] > 0 and
       report["limits"]["gb_per_s"] > 0, f"no limits of the machine: {report['limits']}")

cases = {case["name"]: case for case in report["cases"]}
expected = set(run(*selection, "--list").stdout.split())
expect(set(cases) | {s["name"] for s in report["skipped"]} == expected, "the report has not the cases of --list")
for name, case in cases.items():
    expect(0 < case["min"] <= case["median"], f"{name}: min {case['min']}, median {case['median']}")
    known = case["bytes"] > 0 or case["flops"] > 0
    expect(("of_limit" in case) == known, f"{name}: {'no' if known else 'a'} share of the limit")
    expect(case["iterations"] > 0 and case["epochs"] == len(case["samples"]) > 0, f"{name}: no samples")

for name, case in cases.items():
    # What is measured on another device, or on the host alone, has no counts.
    if "/raw" in name or name.startswith("transfer/") and name.endswith("/host"):
        expect("counts" not in case, f"{name}: counts of another device")
        continue
    counts = case["counts"]
    expect(counts["host_allocations"] >= 0 and counts["pipelines_created"] == 0, f"{name}: {counts}")
for name, wanted in {
        "chain/relu-scale-add/1000/batch": {"submits": 1, "dispatches": 1, "barriers": 0, "transfers_up": 1,
                                            "transfers_down": 1, "bytes_up": 8000, "bytes_down": 4000,
                                            "pipelines_used": 1, "fused_programs": 1, "device_allocations": 0},
        "chain/relu-scale-add/1000/replay": {"submits": 1, "dispatches": 1, "host_allocations": 0,
                                             "device_allocations": 0},
        "dispatch/tiny-chain/100/replay": {"submits": 1, "host_allocations": 0, "device_allocations": 0},
        "dispatch/tiny-ops/1000/one-submit-each": {"submits": 1000, "dispatches": 1000}}.items():
    counts = cases[name]["counts"]
    expect(counts == {**counts, **wanted}, f"{name}: {counts}, expected {wanted}")
    expect(counts["arena_bytes"] <= counts["arena_bytes_without_reuse"], f"{name}: {counts}")
expect(cases["chain/relu-scale-add/1000/batch"]["dump"].startswith("plan: 3 ops, 1 dispatches"), "no dump")
expect("commit" in report, "no commit")

ratios = {(r["group"], r["variant"], r["baseline"]): r for r in report["ratios"]}
for key in (("chain/relu-scale-add/1000", "batch", "one-shot"), ("chain/relu-scale-add/100000", "batch", "one-shot"),
            ("dispatch/tiny-ops/1000", "one-batch", "one-submit-each")):
    expect(key in ratios, f"no ratio for {key}")
for (group, variant, baseline), ratio in ratios.items():
    exact = cases[f"{group}/{baseline}"]["median"] / cases[f"{group}/{variant}"]["median"]
    expect(abs(ratio["by_median"] / exact - 1) < 1e-6, f"{group}: the ratio is not that of its medians")

for problem in problems:
    print(f"check_smoke: {problem}", file=sys.stderr)
sys.exit(1 if problems else 0)
