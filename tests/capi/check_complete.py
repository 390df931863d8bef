#!/usr/bin/env python3
"""Fails for an op of the C++ Batch that has no C function, and for a C function that does not fit its op.

Usage: check_complete.py ROOT

Looks at every public method of Batch in batch.hpp, every row of kernels/elementwise.def and every method of Batch that
a room of lib/ops/ops.def defines. A method NAME is brontes_NAME or brontes_batch_NAME; OVERLOADS names the rest. Then
makes sure that a method, a row and a room that are added are found to be missing.
"""

import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple

# Of the methods that share a name, those whose function has another: by their parameter types.
OVERLOADS: Dict[str, str] = {
    "Batch(const Device&, const BatchOptions&)": "brontes_batch_create",
    "upload(Span<const std::int32_t>)": "brontes_upload_i32",
    "upload(Span<const std::int32_t>, Shape)": "brontes_upload_i32",
    "import_buffer(const Buffer&, Span<const Range>)": "brontes_import_buffer_slice",
    "slice(Tensor, std::int64_t, Range)": "brontes_slice_axis",
    "max(Tensor)": "brontes_reduce_max",
    "min(Tensor)": "brontes_reduce_min",
    "max(Tensor, Axes, bool)": "brontes_reduce_max",
    "min(Tensor, Axes, bool)": "brontes_reduce_min",
    "layer_norm(Tensor, float)": "brontes_layer_norm_plain",
    "rms_norm(Tensor, float)": "brontes_rms_norm_plain",
    "matmul(Tensor, Tensor, std::uint64_t, std::uint64_t, std::uint64_t, const MatmulOptions&)": "brontes_matmul_flat",
    "linear(Tensor, Tensor, Tensor)": "brontes_linear_bias",
    "store(Tensor, const Buffer&, Span<const Range>)": "brontes_store_slice",
    "read(Tensor, Span<std::int32_t>)": "brontes_batch_read_i32",
    "stats()": "brontes_batch_get_stats",
}
# Methods that the rule covers although their parameters are not those of the function's C++ namesake.
SAME: List[str] = ["upload(Span<const float>)", "sum(Tensor)", "read(Tensor)"]

METHOD = re.compile(r"^  (?:explicit )?(?:[\w:<>,&\s]*?[\s&>])?(\w+)\(((?:[^();]|\([^()]*\))*)\)[^;{]*;", re.MULTILINE)
FUNCTION = re.compile(r"^BRONTES_API [\w\s*]*?\b(brontes_\w+)\(([^)]*)\);", re.MULTILINE)
ROW = re.compile(r"^BRONTES_OP\((\w+), \d+, (\d), (\d), (\w+),", re.MULTILINE)
DEFINITION = re.compile(r"^(?:Tensor|void|std::vector<Tensor>) Batch::(\w+)\(", re.MULTILINE)


class Sources(NamedTuple):
    batch: str         # batch.hpp
    header: str        # brontes.h
    elementwise: str   # elementwise.def
    rooms: List[str]   # lib/ops/*.cpp of ops.def


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def split_parameters(text: str) -> List[str]:
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [" ".join(p.split()) for p in [*parts, part] if p.strip()]


def type_of(parameter: str) -> str:
    declared = parameter.split("=")[0].strip()
    match = re.match(r"(.*[\s&>*])\w+$", declared)
    return (match[1] if match else declared).strip()


def methods(batch: str) -> Dict[str, str]:
    """Name of every public method of Batch, by its signature."""
    body = re.search(r"class BRONTES_API Batch \{(.*?)^ private:", batch, re.DOTALL | re.MULTILINE)
    if body is None:
        sys.exit("batch.hpp has no class Batch")
    found = {}
    for name, parameters in METHOD.findall(without_comments(body[1])):
        types = [type_of(p) for p in split_parameters(parameters)]
        if any("initializer_list" in t or t == "Batch&&" for t in types) or name in ("operator",):
            continue  # those of C++ alone
        found[f"{name}({', '.join(types)})"] = name
    return found


def functions(header: str) -> Dict[str, List[str]]:
    """Parameters of every C function, by its name."""
    return {name: split_parameters(parameters) for name, parameters in FUNCTION.findall(without_comments(header))}


def check(sources: Sources) -> List[str]:
    problems = []
    declared = functions(sources.header)
    cpp = methods(sources.batch)

    used = set()
    by_name: Dict[str, List[str]] = {}
    for signature, name in cpp.items():
        if name == "Batch" and signature not in OVERLOADS:
            continue  # a destructor or a copy
        wanted = [OVERLOADS[signature]] if signature in OVERLOADS else [f"brontes_{name}", f"brontes_batch_{name}"]
        found = [function for function in wanted if function in declared]
        if not found:
            problems.append(f"Batch::{signature} has no C function: expected {' or '.join(wanted)}")
            continue
        used.update([signature] if signature in OVERLOADS or signature in SAME else [])
        if signature not in SAME and signature not in OVERLOADS:
            by_name.setdefault(found[0], []).append(signature)
        single = signature.split("(", 1)[1].replace("Span<const Tensor>", "")
        tensors = len(re.findall(r"\bTensor\b", single))
        taken = sum(p.startswith("brontes_tensor ") and "*" not in p for p in declared[found[0]])
        if tensors != taken:
            problems.append(f"Batch::{signature} takes {tensors} tensors, and {found[0]} takes {taken}")
    for function, signatures in by_name.items():
        shapes = [s for s in signatures if not s.endswith(", Shape)")]
        if len(signatures) > 1 and len(shapes) > 1:
            problems.append(f"{' and '.join(signatures)} are both {function}: name one of them in OVERLOADS")
    problems += [f"check_complete.py: Batch has no {s}" for s in [*OVERLOADS, *SAME] if s not in used]

    for name, arity, scalars, types in ROW.findall(sources.elementwise):
        if name.endswith("_i32") and name != "fill_i32" or "_to_" in name:
            continue  # what another function does with other types
        function = f"brontes_{name}"
        if function not in declared:
            problems.append(f"the elementwise op {name} has no C function {function}")
            continue
        numbers = sum(p.startswith(("float ", "int32_t ")) for p in declared[function])
        tensors = sum(p.startswith("brontes_tensor ") for p in declared[function])
        if (tensors, numbers) != (int(arity), int(scalars)):
            problems.append(f"{function} takes {tensors} tensors and {numbers} numbers, and {name} ({types}) "
                            f"{arity} and {scalars}")

    for room in sources.rooms:
        for name in DEFINITION.findall(room):
            if f"brontes_{name}" not in declared:
                problems.append(f"a room defines Batch::{name}, which has no C function brontes_{name}")
    return problems


def read(root: Path) -> Sources:
    text = {path: (root / path).read_text(encoding="utf-8") for path in (
        "lib/include/brontes/batch.hpp", "lib/include/brontes/brontes.h", "kernels/elementwise.def", "lib/ops/ops.def")}
    rooms = re.findall(r"^BRONTES_ROOM\((\w+)", text["lib/ops/ops.def"], re.MULTILINE)
    return Sources(text["lib/include/brontes/batch.hpp"], text["lib/include/brontes/brontes.h"],
                   text["kernels/elementwise.def"],
                   [(root / "lib" / "ops" / f"{room}.cpp").read_text(encoding="utf-8") for room in rooms])


def main() -> int:
    sources = read(Path(sys.argv[1]))
    problems = check(sources)
    for problem in problems:
        print(problem)
    found, declared = len(methods(sources.batch)), len(functions(sources.header))
    print(f"{found} methods of Batch, {declared} functions, {len(problems)} problems")

    # What was added without its function.
    def with_method(method: str) -> Sources:
        return sources._replace(batch=sources.batch.replace("  // --- Outputs", f"  {method}\n\n  // --- Outputs"))

    def with_header(old: str, new: str) -> Sources:
        return sources._replace(header=sources.header.replace(old, new))

    cube = "BRONTES_OP(cube, 73, 1, 0, f_f, x * x * x)\n"
    mutants = {
        "Batch::roll(Tensor, std::int64_t)": with_method("Tensor roll(Tensor x, std::int64_t shift);"),
        "Batch::sum(Tensor, Tensor)": with_method("Tensor sum(Tensor x, Tensor weight);"),
        "brontes_cube": sources._replace(elementwise=sources.elementwise + cube),
        "Batch::roll,": sources._replace(rooms=[*sources.rooms, "Tensor Batch::roll(Tensor x) {\n"]),
        "brontes_softplus": with_header("brontes_softplus(", "brontes_soft_plus("),
        "brontes_where": with_header("brontes_tensor mask, brontes_tensor x", "brontes_tensor x"),
    }
    missed = [what for what, mutant in mutants.items() if not any(what in problem for problem in check(mutant))]
    for what in missed:
        print(f"not found to be missing: {what}")
    return 1 if problems or missed or found < 100 or declared < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
