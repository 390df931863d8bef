#!/usr/bin/env python3
"""check_trace.py finds what is wrong with a trace: each of some damaged ones has a problem, the whole one has none."""
import copy
import sys

import check_trace


def span(name, category, pid, tid, begin, duration, run=None):
    return {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": begin, "dur": duration,
            "args": {} if run is None else {"run": run}}


def named(what, pid, tid):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": "x"}}


GOOD = {
    "displayTimeUnit": "ns",
    "otherData": {"clock": "calibrated", "dropped_spans": 0},
    "traceEvents": [
        named("process_name", 1, 0), named("process_name", 2, 0), named("thread_name", 1, 1),
        named("thread_name", 2, 0), span("relu", "record", 1, 1, 0, 1), span("submit", "submit", 1, 1, 2, 2, 7),
        span("relu %1", "device", 2, 0, 3, 4, 7), span("read", "read", 1, 1, 5, 10),
        span("wait", "wait", 1, 1, 6, 3, 7)],
}


def damaged():
    def change(index, **members):
        trace = copy.deepcopy(GOOD)
        trace["traceEvents"][index].update(members)
        return trace
    yield "no clock", {**GOOD, "otherData": {}}
    yield "an unknown phase", change(4, ph="B")
    yield "a time that is a text", change(4, ts="0")
    yield "a duration below 0", change(4, dur=-1)
    yield "an unknown category", change(4, cat="fun")
    yield "no name", change(4, name="")
    yield "a process without a name", change(4, pid=3)
    yield "a thread without a name", change(4, tid=9)
    yield "order", change(4, ts=100)
    yield "nesting", change(8, dur=30)
    yield "a device span before its submit", change(6, ts=1.5)
    yield "a device span after its wait", change(6, dur=20)
    yield "a device span without a submit", change(5, args={})


def main():
    problems = check_trace.check(GOOD)
    status = 0
    if problems:
        print("the good one:", problems)
        status = 1
    for what, trace in damaged():
        if not check_trace.check(trace):
            print(f"not found: {what}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
