"""Usage: embed.py OUTPUT.hpp NAME=FILE...

Writes text files as C++ string literals, for the page that needs nothing else.
"""

import pathlib
import sys

# What compilers must accept of one literal is less than a library has.
PIECE = 8000

lines = ["#pragma once", "#include <string_view>", "namespace brontes::bench::page {"]
for argument in sys.argv[2:]:
    name, path = argument.split("=", 1)
    text = pathlib.Path(path).read_text(encoding="utf-8")
    # It goes between tags of a page that an XML parser reads, too.
    for end in ("]]>", "</script", "</style", ')page"'):
        if end in text.lower():
            sys.exit(f"{path}: has {end}")
    pieces = [text[at:at + PIECE] for at in range(0, len(text), PIECE)]
    lines.append(f"inline constexpr std::string_view {name} =")
    lines += [f'R"page({piece})page"' for piece in pieces]
    lines.append(";")
lines.append("}")
pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
