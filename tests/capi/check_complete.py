#!/usr/bin/env python3
"""Fails for an op of the C++ Batch that has no C function, and for a C function that does not fit its op.

Usage: check_complete.py ROOT

Looks at every public method of Batch in batch.hpp, every row of kernels/elementwise.def, every method of Batch that a
room of lib/ops/ops.def defines, and every function of vulkan.hpp, prepare.hpp and tuning.hpp. A method NAME is
brontes_NAME or brontes_batch_NAME, a function of vulkan.hpp brontes_vulkan_NAME; OVERLOADS and FREE name the rest.
Then makes sure that a method, a row, a room and a function that are added are found to be missing.
"""

import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

# Of the methods that share a name, those whose function has another: by their parameter types.
OVERLOADS: Dict[str, str] = {
    "Batch(const Device&, const BatchOptions&)": "brontes_batch_create",
    "upload(Span<const std::int32_t>)": "brontes_upload_i32",
    "upload(Span<const std::int32_t>, Shape)": "brontes_upload_i32",
    "upload_f16(Span<const std::uint16_t>, Shape)": "brontes_upload_f16_bits",
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
    "read_f16(Tensor)": "brontes_batch_read_f16_bits",
    "read(Tensor, Span<std::uint16_t>)": "brontes_batch_read_f16_bits",
    "stats()": "brontes_batch_get_stats",
}
# Methods that the rule covers although their parameters are not those of the function's C++ namesake.
SAME: List[str] = ["upload(Span<const float>)", "sum(Tensor)", "read(Tensor)"]

# Functions outside of Batch whose C function does not follow the rule, by header, name and first parameter. None: C does
# without it.
FREE: Dict[str, Optional[str]] = {
    "vulkan handles(const Device&)": "brontes_vulkan_get_handles",
    "vulkan merge(const DeviceFeatures&)": "brontes_vulkan_merge_features",
    "vulkan submit(Batch&)": "brontes_vulkan_submit_batch",
    "vulkan submit(Program&)": "brontes_vulkan_submit_program",
    "vulkan set_name(const Buffer&)": "brontes_vulkan_name_buffer",
    "vulkan set_name(Program&)": "brontes_vulkan_name_program",
    "vulkan region(const Buffer&)": "brontes_vulkan_buffer_region",
    "prepare prepare(const Batch&)": "brontes_batch_prepare",
    "prepare save_pipelines(const Device&)": "brontes_device_save_pipelines",
    "prepare load_pipelines(const Device&)": "brontes_device_load_pipelines",
    "tuning default_tune_shapes(bool)": None,  # what a tune without shapes uses
}
PREFIXES = {"vulkan": "brontes_vulkan_", "prepare": "brontes_", "tuning": "brontes_"}

METHOD = re.compile(r"^  (?:explicit )?(?:[\w:<>,&\s]*?[\s&>])?(\w+)\(((?:[^();]|\([^()]*\))*)\)[^;{]*;", re.MULTILINE)
FUNCTION = re.compile(r"^BRONTES_API [\w\s*]*?\b(brontes_\w+)\(([^)]*)\);", re.MULTILINE)
ROW = re.compile(r"^BRONTES_OP\((\w+), \d+, (\d), (\d), (\w+),", re.MULTILINE)
FREE_FUNCTION = re.compile(r"^BRONTES_API [\w:<>*&\s]*?\b(\w+)\(([^;]*)\)[^;()]*;", re.MULTILINE)
DEFINITION = re.compile(r"^(?:Tensor|void|std::vector<Tensor>) Batch::(\w+)\(", re.MULTILINE)


class Sources(NamedTuple):
    batch: str         # batch.hpp
    header: str        # brontes.h
    elementwise: str   # elementwise.def
    rooms: List[str]   # lib/ops/*.cpp of ops.def
    free: Dict[str, str]  # the headers with functions outside of Batch, by name


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


def free_functions(free: Dict[str, str]) -> List[str]:
    """'HEADER NAME(TYPE OF THE FIRST PARAMETER)' of every function, each once."""
    found = []
    for header, text in free.items():
        for name, parameters in FREE_FUNCTION.findall(without_comments(text)):
            first = split_parameters(parameters)
            found.append(f"{header} {name}({type_of(first[0]) if first else ''})")
    return list(dict.fromkeys(found))


def check_free(sources: Sources, declared: Dict[str, List[str]]) -> List[str]:
    found = free_functions(sources.free)
    problems = [f"check_complete.py: there is no {s}" for s in FREE if s not in found]
    for signature in found:
        header, name = signature.split("(")[0].split(" ")
        wanted = FREE.get(signature, PREFIXES[header] + name)
        if wanted is not None and wanted not in declared:
            problems.append(f"{header}.hpp: {signature.split(' ', 1)[1]} has no C function {wanted}")
    names = [signature.split("(")[0] for signature in found if signature not in FREE]
    problems += [f"{name} is overloaded: name one of them in FREE" for name in names if names.count(name) > 1]
    return problems


def check(sources: Sources) -> List[str]:
    problems = check_free(sources, functions(sources.header))
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
    def text(path: str) -> str:
        return (root / path).read_text(encoding="utf-8")

    public = "lib/include/brontes/"
    rooms = re.findall(r"^BRONTES_ROOM\((\w+)", text("lib/ops/ops.def"), re.MULTILINE)
    return Sources(text(public + "batch.hpp"), text(public + "brontes.h") + text(public + "brontes_vulkan.h"),
                   text("kernels/elementwise.def"), [text(f"lib/ops/{room}.cpp") for room in rooms],
                   {header: text(f"{public}{header}.hpp") for header in PREFIXES})


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
        "brontes_vulkan_record": with_header("brontes_vulkan_record(", "brontes_vulkan_record_program("),
        "vulkan.hpp: unmap(const Buffer&)": sources._replace(free={
            **sources.free, "vulkan": sources.free["vulkan"] + "BRONTES_API Error unmap(const Buffer& buffer);\n"}),
        "brontes_where": with_header("brontes_tensor mask, brontes_tensor x", "brontes_tensor x"),
    }
    missed = [what for what, mutant in mutants.items() if not any(what in problem for problem in check(mutant))]
    for what in missed:
        print(f"not found to be missing: {what}")
    return 1 if problems or missed or found < 100 or declared < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
