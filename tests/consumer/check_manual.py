#!/usr/bin/env python3
"""The man page and the bash completion of the brontes command have its commands and options, and no others.

Usage: check_manual.py BRONTES MANUAL COMPLETION
"""
import pathlib
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    program, manual, completion = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    page = manual.read_text(encoding="utf-8").replace("\\-", "-")
    commands = re.findall(r"^  ([a-z]+) ", output(program, "--help"), re.MULTILINE)
    problems = [] if len(commands) > 3 else [f"the help lists too few commands: {commands}"]
    known = {"--help", "--version"}
    for command in commands:
        if not re.search(rf"^\.B[A-Z]* \"?{command}\b", page, re.MULTILINE):
            problems.append(f"the man page has no command {command}")
        options = set(re.findall(r"--[a-z][a-z-]*", output(program, command, "--help"))) | {"--help"}
        known |= options
        offered = set(output("bash", "-c", 'source "$1"; COMP_WORDS=(brontes "$2" ""); COMP_CWORD=2; _brontes; '
                             'printf "%s\\n" "${COMPREPLY[@]}"', "bash", str(completion), command).split())
        if offered != options:
            problems.append(f"{command}: the completion offers {sorted(offered)}, the help has {sorted(options)}")
    problems += [f"the man page has no {option}" for option in sorted(known - {"--version"}) if option not in page]
    problems += [f"the man page has {option}, which no command takes"
                 for option in sorted(set(re.findall(r"--[a-z][a-z-]*", page)) - known)]
    offered = set(output("bash", "-c", 'source "$1"; COMP_WORDS=(brontes ""); COMP_CWORD=1; _brontes; '
                         'printf "%s\\n" "${COMPREPLY[@]}"', "bash", str(completion)).split())
    if offered != {*commands, "help", "--help", "--version"}:
        problems.append(f"the completion offers {sorted(offered)} as commands")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
