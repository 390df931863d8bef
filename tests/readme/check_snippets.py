"""Checks that every snippet of the examples stands in the document as it is in the source.

Usage: check_snippets.py DOCUMENT SOURCE...

A snippet is what stands between "// snippet: name" and "// end", without its indentation.
"""

import pathlib
import sys
import textwrap


def snippets(source: pathlib.Path):
    name, lines = None, []
    for line in source.read_text().splitlines():
        text = line.strip()
        if text.startswith("// snippet: "):
            name, lines = text.removeprefix("// snippet: "), []
        elif text == "// end" and name:
            yield name, textwrap.dedent("\n".join(lines)) + "\n"
            name = None
        elif name:
            lines.append(line)


def main() -> int:
    document = pathlib.Path(sys.argv[1])
    text = document.read_text()
    found, missing = 0, []
    for source in map(pathlib.Path, sys.argv[2:]):
        for name, snippet in snippets(source):
            found += 1
            language = "cpp" if source.suffix == ".cpp" else "glsl"
            if f"```{language}\n{snippet}```\n" not in text:
                missing.append(f"{source.name}: {name}")
    for what in missing:
        print(f"{document.name} does not have this snippet as it is in the source: {what}")
    print(f"{found} snippets, {len(missing)} differ")
    return 1 if missing or found == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
