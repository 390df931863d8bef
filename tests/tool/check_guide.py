#!/usr/bin/env python3
"""Runs the commands of docs/profiling.md, in their order and on the files of examples/, and checks what they show.

Usage: check_guide.py BRONTES GUIDE

Commands are the lines of ```sh blocks that begin with "brontes". A ```text block behind one is what it printed: the
first word of each line must be among what it prints now. Numbers may differ.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import check_trace


def main():
    program, guide = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    problems, commands, shown = [], 0, ""
    with tempfile.TemporaryDirectory(prefix="brontes-guide-") as folder:
        for example in (guide.parent.parent / "examples").glob("*.json"):
            shutil.copy(example, folder)
        os.chdir(folder)
        for language, text in blocks:
            if language == "text":
                words = [line.split()[0] for line in text.splitlines() if line.strip()]
                problems += [f"the guide shows {word!r}, which is not printed" for word in words
                             if word not in shown.split() and not re.fullmatch(r"[\d.,]+", word)]
                continue
            for line in text.splitlines():
                if not line.startswith("brontes "):
                    continue
                commands += 1
                arguments = line.split("#")[0].split()[1:]
                done = subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, check=False)
                shown = done.stdout
                if done.returncode != 0:
                    problems.append(f"{line}: exit status {done.returncode}: {done.stderr.strip()}")
        for trace in pathlib.Path(folder).glob("trace*.json"):
            problems += check_trace.check(json.loads(trace.read_text(encoding="utf-8")))
    if commands < 3:
        problems.append(f"the guide has {commands} commands")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
