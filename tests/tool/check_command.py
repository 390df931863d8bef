#!/usr/bin/env python3
"""The brontes command on a driver: every verb works, --json is JSON, and bad input is exit status 2 with a message.

Usage: check_command.py BRONTES
"""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import check_trace

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
problems = []


def brontes(*arguments, status=0):
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != status:
        problems.append(f"{' '.join(arguments)}: exit status {done.returncode}, not {status}: {done.stderr.strip()}")
    return done


def report(*arguments, status=0):
    done = brontes(*arguments, "--json", status=status)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        problems.append(f"{' '.join(arguments)} --json: {error}")
        return None


def expect(what, condition):
    if not condition:
        problems.append(what)


def npy(shape, values, kind="<f4"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({','.join(map(str, shape))},), }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    letter = {"<f4": "f", "<i4": "i", "<f8": "d", "<i8": "q", "|b1": "?"}[kind]
    data = struct.pack(f"<{len(values)}{letter}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def read_npy(path):
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    return data[10:10 + length].decode(), struct.unpack(f"<{(len(data) - 10 - length) // 4}f", data[10 + length:])


BATCH = {
    "inputs": {
        "x": {"npy": "x.npy"},
        "w": {"shape": [3, 2], "values": [1, 2, 3, 4, 5, 6]},
        "b": {"shape": [2], "fill": 0.5},
        "i": {"npy": "i.npy"},
        "big": {"shape": [64, 64], "random": 3},
    },
    "ops": [
        {"out": "h", "op": "matmul", "in": ["x", "w"]},
        {"out": "s", "op": "add", "in": ["h", "b"]},
        {"out": "y", "op": "relu", "in": ["s"]},
        {"out": "g", "op": "gather", "in": ["y", "i"]},
        {"out": "m", "op": "softmax", "in": ["big"]},
        {"out": "z", "op": "sum", "in": ["m"], "axes": [1]},
    ],
    "outputs": {"y": "y.npy", "g": "g.npy", "z": "z.npy"},
}


def check_batch(folder):
    path = folder / "batch.json"
    path.write_text(json.dumps(BATCH))
    (folder / "x.npy").write_bytes(npy((2, 3), [1, 0, -1, 2, -3, 0.5]))
    (folder / "i.npy").write_bytes(npy((1,), [1], "<i8"))
    ran = report("run", str(path))
    expect("run names its outputs in their order", ran and [o["name"] for o in ran["outputs"]] == ["y", "g", "z"])
    header, y = read_npy(folder / "y.npy")
    # x w + b, and what is below 0 is 0.
    want = [max(0.0, v + 0.5) for v in (1 - 5, 2 - 6, 2 - 9 + 2.5, 4 - 12 + 3)]
    right = len(y) == 4 and all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(y, want))
    expect(f"run computes {y}, not {want}", right)
    expect("an output has its shape", "(2,2,)" in header)
    expect("gather takes row 1", read_npy(folder / "g.npy")[1] == y[2:])
    expect("rows of softmax add up to 1", all(abs(v - 1) < 1e-5 for v in read_npy(folder / "z.npy")[1]))
    brontes("run", str(path))

    plan = report("plan", str(path))
    expect("plan has dispatches", plan and plan["stage"] == "planned" and len(plan["dispatches"]) >= 3)
    recorded = report("plan", str(path), "--recorded")
    expect("plan --recorded is what was recorded", recorded and recorded["stage"] == "recorded")
    expect("plan as dot", brontes("plan", str(path), "--format", "dot").stdout.startswith("digraph"))
    expect("plan as text", "matmul" in brontes("plan", str(path)).stdout)

    profile = report("profile", str(path), "--runs", "3", "--gflops", "10", "--gbytes", "20")
    expect("profile has all dispatches", profile and plan and sum(
        e["count"] for e in profile["entries"] if e["kernel"]) == len(plan["dispatches"]))
    expect("profile keeps the limits",
           profile and profile["limits"] == {"flops_per_second": 1e10, "bytes_per_second": 2e10})
    expect("shares add up", profile and abs(sum(e["share"] for e in profile["entries"]) - 1) < 1e-6)
    table = brontes("profile", str(path), "--all", "--no-limits").stdout
    expect("profile prints a table", "kernel" in table and "softmax" in table and "of limit" not in table)

    checked = report("check", str(path))
    expect(f"check finds nothing wrong: {checked}", checked and checked["ok"] and checked["checked"] >= 3 and
           checked["not_checked"] == [])

    trace = folder / "trace.json"
    brontes("trace", str(path), "--output", str(trace), "--runs", "2")
    content = json.loads(trace.read_text())
    problems.extend(check_trace.check(content))
    spans = [e for e in content["traceEvents"] if e["ph"] == "X"]
    for category in ("record", "plan", "encode", "write", "submit", "wait", "read", "device"):
        expect(f"the trace has {category}", any(e["cat"] == category for e in spans))
    expect("two runs are traced", len({e["args"]["run"] for e in spans if e["cat"] == "device"}) == 2)
    expect("ops are labels", any("softmax" in e["name"] for e in spans if e["cat"] == "device"))
    expect("a trace to stdout", json.loads(brontes("trace", str(path), "--output", "-").stdout)["traceEvents"])


def check_reports():
    expect("version", report("version").keys() == {"version"})
    devices = report("devices")
    expect("devices: one is used", devices and sum(d["used"] for d in devices) == 1)
    info = report("info")
    expect("info", info and info["device"]["name"] and info["pipeline_cache"]["state"] and info["tuning"]["state"])
    expect("info: features", info and "timelineSemaphore" in info["features"] and isinstance(info["extensions"], list))
    shown = brontes("info").stdout
    expect("info for people", "Pipeline cache" in shown and "Features used\n  timelineSemaphore" in shown)
    kernels = report("kernels")
    expect("kernels", kernels and {k["access"] for k in kernels} == {"storage", "texel", "pointer"} and
           any(k["name"] == "softmax" for k in kernels) and all(k["spirv_bytes"] > 100 for k in kernels))
    expect("kernels for people", "softmax" in brontes("kernels").stdout)
    # Drivers for CPUs do not tell what they make of a kernel.
    expect("kernels --compiled says why not",
           "VK_KHR_pipeline_executable_properties" in brontes("kernels", "--compiled", status=1).stderr)
    expect("explain", report("explain", "8", "16", "32")["kernel"])


def check_cache(folder):
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    brontes("run", str(folder / "batch.json"))
    shown = report("cache", "show")
    expect("there is a cache after a run", shown and shown["pipelines"]["exists"] and shown["pipelines"]["bytes"] > 0)
    brontes("cache", "clear")
    shown = report("cache", "show")
    expect("there is none after it was cleared", shown and not shown["pipelines"]["exists"])
    brontes("cache", "show")
    brontes("cache", "lose", status=2)


def bad_documents():
    yield "", "line 1: expected a value"
    yield "{", "expected a name"
    yield '{"inputs": {},}', "expected a name"
    yield '{"inputs": {}, "inputs": {}}', "twice"
    yield "[1, 2", "in an array"
    yield '{"inputs": 01}', "leading 0"
    yield '{"inputs": 1e999}', "no double"
    yield '"\\x"', "no escape"
    yield '"\\ud800"', "surrogate"
    yield "[" * 200, "more than 100 levels"
    yield "{} {}", "behind the value"
    yield "[]", "expected an object"
    yield "{}", 'no "inputs"'
    yield json.dumps({**BATCH, "extra": 1}), 'takes no "extra"'
    yield json.dumps({**BATCH, "ops": [{"op": "fly", "out": "a"}]}), 'no op "fly"'
    yield json.dumps({**BATCH, "ops": [{"op": "relu", "out": "a", "in": ["nobody"]}]}), 'no tensor "nobody"'
    yield json.dumps({**BATCH, "ops": [{"op": "relu", "out": "x", "in": ["w"]}]}), "two tensors"
    yield json.dumps({**BATCH, "ops": [{"op": "add", "out": "a", "in": ["w"]}]}), "expected 2"
    yield json.dumps({**BATCH, "ops": [{"op": "scale", "out": "a", "in": ["w"]}]}), 'no "factor"'
    yield json.dumps({**BATCH, "ops": [{"op": "relu", "out": "a", "in": ["w"], "axis": 1}]}), 'takes no "axis"'
    yield json.dumps({**BATCH, "ops": [{"op": "matmul", "out": "a", "in": ["w", "w"]}]}), "matmul"
    yield json.dumps({**BATCH, "ops": [{"op": "sum", "out": "a", "in": ["w"], "axes": [0.5]}]}), "whole number"
    yield json.dumps({**BATCH, "outputs": {"nobody": "n.npy"}}), 'no tensor "nobody"'
    yield json.dumps({**BATCH, "inputs": {"x": {"npy": "none.npy"}}}), "cannot be read"
    yield json.dumps({**BATCH, "inputs": {"x": {"shape": [2], "values": [1]}}}), "1"
    yield json.dumps({**BATCH, "inputs": {"x": {"shape": [-2], "fill": 1}}}), "below 0"
    yield json.dumps({**BATCH, "inputs": {"x": {"shape": [2], "fill": 1, "type": "f64"}}}), "f64"


def bad_arrays():
    good = npy((2, 3), [1, 2, 3, 4, 5, 6])
    yield b"", "begin like one"
    yield b"\x93NUMPY", "begin like one"
    yield good[:6] + b"\x09" + good[7:], "version"
    yield good[:8] + b"\xff\xff" + good[10:], "cut off"
    yield good[:-1], "bytes of data"
    yield good + b"\0", "bytes of data"
    yield good.replace(b"False", b"True "), "Fortran"
    yield good.replace(b"<f4", b">f4"), ">f4"
    yield good.replace(b"(2,3,)", b"(2,x,)"), "extent"
    yield good.replace(b"'shape'", b"'shapf'"), "no 'shape'"
    yield npy((1,), [1e300], "<f8"), "out of range"


def check_bad_input(folder):
    path = folder / "bad.json"

    def refused(what, message):
        done = brontes("run", str(path), status=2)
        expect(f"{what}: the message is {done.stderr.strip()!r}, without {message!r}",
               message in done.stderr and "bad.json" in done.stderr and not done.stdout)

    for document, message in bad_documents():
        path.write_text(document)
        refused(document[:60], message)
    for array, message in bad_arrays():
        path.write_text(json.dumps({"inputs": {"x": {"npy": "bad.npy"}}, "ops": [], "outputs": ["x"]}))
        (folder / "bad.npy").write_bytes(array)
        refused(f"{array[:20]!r}", message)
    for verb in ("run", "plan", "profile", "check"):
        brontes(verb, str(folder / "missing.json"), status=2)
        brontes(verb, status=2)
    brontes("trace", str(folder / "missing.json"), "--output", str(folder / "t.json"), status=2)
    brontes("trace", str(folder / "batch.json"), status=2)
    brontes("trace", str(folder / "batch.json"), "--output", str(folder / "no" / "t.json"), status=1)
    brontes("profile", str(folder / "batch.json"), "--runs", "0", status=2)
    brontes("profile", str(folder / "batch.json"), "--gflops", "fast", status=2)
    brontes("plan", str(folder / "batch.json"), "--format", "xml", status=2)
    brontes("check", str(folder / "batch.json"), "--every", "0", status=2)


def main():
    with tempfile.TemporaryDirectory(prefix="brontes-command-") as name:
        folder = pathlib.Path(name)
        check_batch(folder)
        check_reports()
        check_cache(folder)
        check_bad_input(folder)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
