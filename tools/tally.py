#!/usr/bin/env python3
"""Counts what the test suite did, from Meson's log and Catch2's JUnit reports.

A Meson test of the suite `catch2` counts as the test cases in its report, BUILD/junit/NAME.xml; any other Meson
test counts as one. Whatever went wrong without a report to show for it counts as one failure: a crash, a report
that is missing or cut off, a run that stopped early.
"""

import argparse
import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}
CATCH2_ALL_SKIPPED = 4  # Catch2's exit status when every selected test case skipped itself
EXCERPT = 1500  # characters of a failure that are printed


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = field(default_factory=list)

    def fail(self, what, why=""):
        """`why` is printed below it: the tally is often all that is kept of a run."""
        self.failed += 1
        excerpt = "\n".join(f"        {line}" for line in why.strip()[:EXCERPT].splitlines())
        self.notes.append(f"FAILED  {what}" + (f"\n{excerpt}" if excerpt else ""))

    def skip(self, what):
        self.skipped += 1
        self.notes.append(f"skipped {what}")

    def line(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def read_log(build):
    """The records of Meson's log, and whether it was whole."""
    records = []
    try:
        for line in (build / "meson-logs" / "testlog.json").read_text(errors="replace").splitlines():
            records.append(json.loads(line))
    except (OSError, ValueError):
        return records, False
    return records, True


def registered_tests(build):
    """Name -> suites of every test the build directory knows."""
    try:
        tests = json.loads((build / "meson-info" / "intro-tests.json").read_text())
    except (OSError, ValueError):
        return {}
    return {test["name"]: [suite.rpartition(":")[2] for suite in test["suite"]] for test in tests}


def plain_name(logged, registered):
    """Meson logs `project:suite / name` once there are suites; the name itself may hold slashes."""
    matches = [name for name in registered if logged == name or logged.endswith(" / " + name)]
    return max(matches, key=len, default=logged)


def count_report(tally, report, label):
    """Adds a JUnit report's test cases. Returns (cases, failures), or None when it cannot be read."""
    try:
        cases = list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None
    failures = 0
    for case in cases:
        name = f"{label}: {case.get('name', 'unnamed test case')}"
        problems = [*case.findall("failure"), *case.findall("error")]
        if problems:
            tally.fail(name, "\n".join(f"{problem.get('message', '')}{problem.text or ''}" for problem in problems))
            failures += 1
        elif case.find("skipped") is not None:
            tally.skip(name)
        else:
            tally.passed += 1
    return len(cases), failures


def count_catch2(tally, record, report, label):
    result = record["result"]
    if result in SKIPPED:
        tally.skip(label)
        return
    passed_before = tally.passed
    counted = count_report(tally, report, label)
    if counted is None:
        tally.fail(f"{label}: {result}, and no readable report in {report.name}")
        return
    cases, failures = counted
    all_skipped = cases > 0 and tally.passed == passed_before and record.get("returncode") == CATCH2_ALL_SKIPPED
    if result not in PASSED and not failures and not all_skipped:
        tally.fail(f"{label}: {result}, status {record.get('returncode')}, though no test case failed")


def count_run(tally, build, status):
    """Adds one `meson test` run that ended with this status."""
    records, whole = read_log(build)
    registered = registered_tests(build)
    meson_failures = 0
    for record in records:
        name = plain_name(record["name"], registered)
        label = f"{build.name}: {name}"
        result = record["result"]
        meson_failures += result not in PASSED | SKIPPED
        if "catch2" in registered.get(name, []):
            count_catch2(tally, record, build / "junit" / f"{name}.xml", label)
        elif result in PASSED:
            tally.passed += 1
        elif result in SKIPPED:
            tally.skip(label)
        else:
            tally.fail(f"{label}: {result}", (record.get("stderr") or record.get("stdout") or "")[-EXCERPT:])
    if not whole:
        tally.fail(f"{build.name}: the log of the run is missing or cut off")
    elif status and not meson_failures:
        tally.fail(f"{build.name}: the run stopped early, with status {status}")


def main():
    parser = argparse.ArgumentParser(description="Counts what the test suite did.")
    parser.add_argument("--run", nargs=2, action="append", default=[], metavar=("BUILD", "STATUS"),
                        help="a build directory, and the exit status of `meson test` in it")
    parser.add_argument("--broken", action="append", default=[], metavar="WHAT",
                        help="something that failed before any test could run; one failure")
    parser.add_argument("--skipped", action="append", default=[], metavar="WHAT",
                        help="something that could not be done here; no failure")
    parser.add_argument("--elapsed", type=int, metavar="SECONDS", help="print the time taken, too")
    arguments = parser.parse_args()

    tally = Tally()
    for what in arguments.broken:
        tally.fail(what)
    for what in arguments.skipped:
        tally.skip(what)
    for build, status in arguments.run:
        count_run(tally, Path(build), int(status))

    print()
    for note in tally.notes:
        print(note)
    if arguments.elapsed is not None:
        print(f"took {arguments.elapsed} s")
    print(tally.line())
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main())
