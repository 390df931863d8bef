#!/usr/bin/env python3
"""Checks a trace of Device::stop_trace() against the Trace Event Format, as far as the library uses it.

Usage: check_trace.py FILE...

A trace is an object with traceEvents: metadata (ph M) that names every process and thread, and complete events (ph X)
with a name, a category, pid, tid, ts and dur, in the order of their ts. On each track events nest: one that begins
inside another ends inside it. What the device does lies between the begin of its submit and the end of the wait that
saw it done.
"""
import collections
import json
import sys

# Times are microseconds with three digits.
ROUNDING = 0.0015
CATEGORIES = {"record", "plan", "encode", "write", "submit", "wait", "read", "device"}


def check_shape(trace):
    problems = []
    if set(trace) != {"displayTimeUnit", "otherData", "traceEvents"}:
        problems.append(f"the trace has the members {sorted(trace)}")
    if trace.get("displayTimeUnit") not in ("ns", "ms"):
        problems.append("displayTimeUnit is neither ns nor ms")
    if not isinstance(trace.get("otherData", {}).get("clock"), str):
        problems.append("otherData does not say which clock")
    for index, event in enumerate(trace["traceEvents"]):
        where = f"event {index}"
        for key in ("pid", "tid"):
            if not isinstance(event.get(key), int) or isinstance(event.get(key), bool):
                problems.append(f"{where}: {key} is no integer")
        if not isinstance(event.get("name"), str) or not event["name"]:
            problems.append(f"{where}: it has no name")
        if event.get("ph") == "M":
            if event.get("name") not in ("process_name", "thread_name"):
                problems.append(f"{where}: unknown metadata {event.get('name')}")
            if not isinstance(event.get("args", {}).get("name"), str):
                problems.append(f"{where}: metadata without a name")
        elif event.get("ph") == "X":
            for key in ("ts", "dur"):
                value = event.get(key)
                if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
                    problems.append(f"{where}: {key} is {value}")
            if event.get("cat") not in CATEGORIES:
                problems.append(f"{where}: unknown category {event.get('cat')}")
            if not isinstance(event.get("args"), dict):
                problems.append(f"{where}: args is no object")
        else:
            problems.append(f"{where}: unknown phase {event.get('ph')}")
    return problems


def check_names(events):
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}
    return [f"track {track} has no name" for track in sorted(used - named)] + [
        f"process {pid} has no name" for pid in sorted({pid for pid, _ in used} - processes)]


def check_nesting(spans):
    problems = []
    tracks = collections.defaultdict(list)
    for span in spans:
        tracks[span["pid"], span["tid"]].append(span)
    for track, all_spans in tracks.items():
        before = 0
        still_open = []
        for span in all_spans:
            begin, end = span["ts"], span["ts"] + span["dur"]
            if begin < before - ROUNDING:
                problems.append(f"track {track}: {span['name']} at {begin} comes after one at {before}")
            before = begin
            while still_open and still_open[-1] <= begin + ROUNDING:
                still_open.pop()
            if still_open and end > still_open[-1] + ROUNDING:
                problems.append(f"track {track}: {span['name']} at {begin} ends outside of what it began in")
            still_open.append(end)
    return problems


def check_device(spans):
    problems = []
    submits = {s["args"]["run"]: s for s in spans if s["cat"] == "submit" and "run" in s["args"]}
    waits = [s for s in spans if s["cat"] == "wait"]
    for span in spans:
        if span["cat"] != "device":
            continue
        run = span["args"].get("run")
        submit = submits.get(run)
        ends = [w["ts"] + w["dur"] for w in waits if w["args"].get("run", 0) >= (run or 0)]
        if submit is None or not ends:
            problems.append(f"{span['name']} of run {run} has no submit or no wait")
        elif span["ts"] < submit["ts"] - ROUNDING or span["ts"] + span["dur"] > min(ends) + ROUNDING:
            problems.append(f"{span['name']} of run {run} is not between its submit and its wait")
    return problems


def check(trace):
    """What is wrong with it; nothing if it is fine."""
    problems = check_shape(trace)
    if problems:
        return problems
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    return check_names(trace["traceEvents"]) + check_nesting(spans) + check_device(spans)


def main():
    status = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for problem in check(json.load(file)):
                print(f"{path}: {problem}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
