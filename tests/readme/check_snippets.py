"""Checks that every snippet of the examples stands in the document as it is in the source.

Usage: check_snippets.py [--complete LANGUAGE[,LANGUAGE]...] DOCUMENT SOURCE...

A snippet is what stands between "// snippet: name" and "// end", or "# snippet: name" and "# end", without its
indentation. Runs of spaces before a comment at the end of a line may differ.

  --complete  every block of the document in these languages is a snippet
"""

import argparse
import pathlib
import re
import sys
import textwrap

LANGUAGES = {".c": "c", ".cpp": "cpp", ".py": "python"}


def snippets(source: pathlib.Path):
    name, lines = None, []
    for line in source.read_text().splitlines():
        text = re.sub("^# ", "// ", line.strip())
        if text.startswith("// snippet: "):
            name, lines = text.removeprefix("// snippet: "), []
        elif text == "// end" and name:
            yield name, textwrap.dedent("\n".join(lines)) + "\n"
            name = None
        elif name:
            lines.append(line)


def normal(text: str) -> str:
    return re.sub(r" +//", "  //", text)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--complete", default="")
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    document = arguments.document
    blocks = [(language, normal(text)) for language, text in
              re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)]
    found, missing = [], []
    for source in arguments.sources:
        for name, snippet in snippets(source):
            found.append((LANGUAGES.get(source.suffix, "glsl"), normal(snippet)))
            if found[-1] not in blocks:
                missing.append(f"{source.name}: {name}")
    for what in missing:
        print(f"{document.name} does not have this snippet as it is in the source: {what}")
    unknown = [text for language, text in blocks
               if language in arguments.complete.split(",") and (language, text) not in found]
    for text in unknown:
        print(f"{document.name} has a block that is in no source:\n{text}")
    print(f"{len(found)} snippets, {len(missing)} differ, {len(unknown)} blocks without a source")
    return 1 if missing or unknown or not found else 0


if __name__ == "__main__":
    sys.exit(main())
