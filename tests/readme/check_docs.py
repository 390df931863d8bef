#!/usr/bin/env python3
"""Compiles every C++ block of README.md and of the documents whose blocks no other test compiles.

Usage: check_docs.py --source SOURCE_ROOT --include DIR... --cxx COMPILER...

Blocks are definitions, which stand in a namespace each, or statements, which stand in a function that has the variables
of CONTEXTS. The second block of README.md follows the first one in its main().
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

PRELUDE = """
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <brontes/brontes.hpp>
#include <brontes/vulkan.hpp>

struct Heap {  // an engine's own
  std::uint64_t bytes = 0;
  VkResult take(const brontes::vulkan::MemoryRequest& wanted, brontes::vulkan::MemoryBlock& block);
  void give_back(const brontes::vulkan::MemoryBlock& block);
};
brontes::Error fail(const brontes::Error& error);
"""

# What the statements of a document use without declaring it. A document without statements has none.
CONTEXTS = {
    "README.md": "std::vector<float> weights, biases, rows; std::size_t outputs = 1, inputs = 1, row_count = 1;",
    "docs/coming-from-trueno.md": "extern const brontes::Device& device; extern std::vector<float> weights, bias, x, y; "
                                  "extern std::size_t outputs, inputs, rows;",
    "docs/embedding.md": None,
    "docs/programs.md": "extern const brontes::Device& device; extern const brontes::Buffer& weights; "
                        "extern const brontes::Buffer& bias; extern std::vector<std::vector<float>> frames; "
                        "extern std::vector<float> first_frame, result; extern std::size_t rows, cols;",
    "docs/tuning.md": "extern const brontes::Device& device;",
}
# Blocks of these are all snippets of sources, which check_snippets.py sees to, or steps that another test follows.
ELSEWHERE = {"docs/adding-an-op.md", "docs/benchmarking.md", "docs/c-api.md", "docs/custom-kernels.md",
             "docs/profiling.md"}
# Quoted from examples that are C++20 and have classes of their own.
QUOTED = {"docs/programs.md": ["examples/coroutine.cpp", "examples/event_loop.cpp", "examples/thread_pool.cpp"]}


def blocks_of(document):
    return re.findall(r"^```cpp\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def squeezed(text):
    return re.sub(r"\s+", "", text)


def is_definitions(block):
    """Whether it ends as a function or class does, at the left margin, and opens one there."""
    return re.search(r"^\}", block, re.MULTILINE) is not None and re.search(
        r"^(?!if|for|while|do)[\w:<>,&*~ ]+\(.*[^;]$", block, re.MULTILINE) is not None


def program_of(name, blocks, context):
    includes, parts = [], []
    if name == "README.md":
        first = blocks.pop(0)
        body = first.rstrip().removesuffix("}") + "\n".join(blocks) + "}\n"
        return PRELUDE + context + "\n" + body, 1 + len(blocks)
    for number, block in enumerate(blocks):
        includes += re.findall(r"^#include .*$", block, re.MULTILINE)
        text = re.sub(r"^#include .*$", "", block, flags=re.MULTILINE)
        if is_definitions(text):
            parts.append(f"namespace block_{number} {{\n{text}}}\n")
        elif context is None:
            sys.exit(f"{name}: a block of statements, and nothing says what they use:\n{block}")
        else:
            parts.append(f"namespace block_{number} {{\n{context}\nbrontes::Error run() {{\n{{\n{text}}}\nreturn {{}};\n"
                         "}\n}\n")
    return "\n".join(includes) + PRELUDE + "\n".join(parts), len(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--include", action="append", required=True)
    parser.add_argument("--cxx", nargs="+", required=True)
    arguments = parser.parse_args()

    documents = [arguments.source / "README.md", *sorted((arguments.source / "docs").glob("*.md"))]
    count = 0
    with tempfile.TemporaryDirectory(prefix="brontes-docs-") as folder:
        for document in documents:
            name = document.relative_to(arguments.source).as_posix()
            quoted = squeezed("".join((arguments.source / file).read_text() for file in QUOTED.get(name, [])))
            blocks = [block for block in blocks_of(document) if squeezed(block) not in quoted]
            if name in ELSEWHERE or not blocks:
                continue
            if name not in CONTEXTS:
                sys.exit(f"{name} has C++ blocks that no test compiles; add it here")
            text, compiled = program_of(name, blocks, CONTEXTS[name])
            source = pathlib.Path(folder) / (document.stem + ".cpp")
            source.write_text(text, encoding="utf-8")
            print(f"{name}: {compiled} blocks", flush=True)
            if subprocess.run([*arguments.cxx, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                               "-Wno-unused-variable", "-Wno-unused-but-set-variable",
                               *[f"-I{path}" for path in arguments.include], str(source)]).returncode != 0:
                sys.exit(f"a block of {name} does not compile")
            count += compiled
    print(f"{count} blocks compile")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
