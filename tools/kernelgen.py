#!/usr/bin/env python3
"""Turns compute kernels into C++.

compile  one GLSL source -> one optimised, validated SPIR-V module and its depfile
embed    all the modules -> kernels.hpp, kernels.cpp

Everything the C++ side knows about a kernel (bindings, access, push-constant structs, specialization
constants, subgroup use) is read from the SPIR-V itself. The modules are embedded compressed. Output depends on
nothing but the input and the versions of the tools: no paths, no dates, sorted order.

Optimised modules are kept in the folder that BRONTES_KERNEL_CACHE names, if it is set: several build directories of
one checkout optimise a kernel once.
"""

import argparse
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sized, Tuple


# Loops marked [[unroll]] are unrolled first, the innermost ones in each round, so that what the rest sees has constants
# in place of their counters: then arrays that they index become scalars. (Blocks are merged because every pass after
# that takes time by their number.)
UNROLLING = ["--ssa-rewrite", "--loop-unroll", "--simplify-instructions", "--eliminate-dead-branches", "--merge-blocks"]
MAX_ROUNDS = 8

# What spirv-opt does. No inlining: every driver inlines by itself, and the elementwise ops inlined into
# every place that writes a result make modules of megabytes.
OPTIMIZATIONS = [
    "--wrap-opkill", "--eliminate-dead-functions", "--eliminate-dead-branches", "--merge-return",
    "--private-to-local", "--eliminate-local-single-block", "--eliminate-local-single-store", "--eliminate-dead-code-aggressive",
    "--scalar-replacement=128", "--convert-local-access-chains", "--eliminate-local-single-block",
    "--eliminate-local-single-store", "--eliminate-dead-code-aggressive", "--ssa-rewrite", "--eliminate-dead-code-aggressive",
    "--simplify-instructions", "--vector-dce", "--eliminate-dead-branches", "--merge-blocks", "--redundancy-elimination",
    "--eliminate-dead-code-aggressive", "--cfg-cleanup",
]


class KernelError(Exception):
    """A problem with a kernel, worded for whoever wrote it."""


# Writing files


def write_atomically(path: str, data: bytes) -> None:
    """Replaces path as a whole, or leaves it as it was."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".kernelgen-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# compile


def run(what: str, source: str, command: List[str]) -> None:
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise KernelError(f"{source}: cannot run {command[0]}: {error.strerror}")
    if done.returncode != 0:
        raise KernelError(f"{source}: {what} failed (status {done.returncode})\n{done.stdout.rstrip()}")


def dependencies(depfile_text: str) -> List[str]:
    """The prerequisites of a make-style rule, whatever its target."""
    text = depfile_text.replace("\\\n", " ")
    _, _, right = text.partition(": ")
    return [part.replace("\\ ", " ") for part in re.findall(r"(?:\\ |\S)+", right)]


def loops_to_unroll(path: str) -> int:
    """How many loops of a module ask to be unrolled."""
    with open(path, "rb") as file:
        module = Module.parse(file.read())
    return sum(opcode == OP_LOOP_MERGE and operands[2] & LOOP_UNROLL != 0
               for opcode, operands, _ in module.instructions())


def unroll(args: argparse.Namespace, path: str) -> None:
    """Replaces a module by one that has no such loops."""
    for _ in range(MAX_ROUNDS):
        if loops_to_unroll(path) == 0:
            return
        run("spirv-opt", args.source, [args.spirv_opt, *UNROLLING, "--target-env=" + args.target_env, path, "-o", path])
    left = loops_to_unroll(path)
    if left != 0:
        raise KernelError(f"{args.source}: spirv-opt cannot unroll {left} of the loops marked [[unroll]]: they need "
                          "literal bounds, more than one iteration, and no break, continue or return")


def identity(program: str) -> bytes:
    """Changes whenever a program does."""
    path = os.path.realpath(shutil.which(program) or program)
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}\n".encode()


def optimise(args: argparse.Namespace, raw: str, optimised: str) -> None:
    if args.declarations:
        shutil.copyfile(raw, optimised)  # optimising would drop what nothing uses
    else:
        unroll(args, raw)
        run("spirv-opt", args.source,
            [args.spirv_opt, *OPTIMIZATIONS, "--target-env=" + args.target_env, raw, "-o", optimised])
    run("spirv-val", args.source, [args.spirv_val, "--target-env", args.target_env, optimised])


def optimised_module(args: argparse.Namespace, raw: str, optimised: str) -> bytes:
    """What optimise() makes of a module, or has made of it before."""
    kept = ""
    folder = os.environ.get("BRONTES_KERNEL_CACHE")
    if folder:
        key = hashlib.sha256(identity(args.spirv_opt) + identity(args.spirv_val) + args.target_env.encode() +
                             (b"declarations" if args.declarations else b""))
        for path in (os.path.abspath(__file__), raw):
            with open(path, "rb") as file:
                key.update(hashlib.sha256(file.read()).digest())
        kept = os.path.join(folder, key.hexdigest() + ".spv")
        if os.path.exists(kept):
            os.utime(kept)  # tools/check deletes what has not been used for long
            with open(kept, "rb") as file:
                return file.read()
    optimise(args, raw, optimised)
    with open(optimised, "rb") as file:
        words = file.read()
    if kept:
        os.makedirs(folder, exist_ok=True)
        write_atomically(kept, words)
    return words


def command_compile(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="kernelgen-") as scratch:
        raw, optimised, deps = (os.path.join(scratch, name) for name in ("raw.spv", "opt.spv", "raw.d"))
        run("glslang", args.source,
            [args.glslang, "--quiet", "--target-env", args.target_env, "-S", "comp", "--depfile", deps,
             *("-I" + folder for folder in args.include), *("-D" + define for define in args.define),
             *(["-DBRONTES_DECLARATIONS"] if args.declarations else []), "-o", raw, args.source])
        words = optimised_module(args, raw, optimised)
        with open(deps, encoding="utf-8") as rule:
            needed = sorted(set(dependencies(rule.read())))
    if args.depfile:
        escaped = " ".join(name.replace(" ", "\\ ") for name in needed)
        write_atomically(args.depfile, f"{args.output}: {escaped}\n".encode())
    write_atomically(args.output, words)


def update(path: str, data: bytes) -> None:
    """As write_atomically(), but a file that has these bytes keeps its time, so that whatever is built from it is up to
    date."""
    try:
        with open(path, "rb") as now:
            if now.read() == data:
                return
    except FileNotFoundError:
        pass
    write_atomically(path, data)


# Reading SPIR-V

MAGIC = 0x07230203

# Opcodes
OP_NAME, OP_MEMBER_NAME, OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_CAPABILITY = 5, 6, 15, 16, 17
OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_TYPE_IMAGE = 20, 21, 22, 23, 25
OP_TYPE_ARRAY, OP_TYPE_RUNTIME_ARRAY, OP_TYPE_STRUCT, OP_TYPE_POINTER = 28, 29, 30, 32
OP_CONSTANT, OP_SPEC_TRUE, OP_SPEC_FALSE, OP_SPEC_CONSTANT, OP_SPEC_COMPOSITE = 43, 48, 49, 50, 51
OP_VARIABLE, OP_DECORATE, OP_MEMBER_DECORATE, OP_LOOP_MERGE = 59, 71, 72, 246
# SourceContinued, Source, SourceExtension, Name, MemberName, String, Line, NoLine, ModuleProcessed
DEBUG_OPCODES = {2, 3, 4, OP_NAME, OP_MEMBER_NAME, 7, 8, 317, 330}

# Decorations
SPEC_ID, ARRAY_STRIDE, BUILT_IN, NON_WRITABLE, NON_READABLE, BINDING, DESCRIPTOR_SET, OFFSET = 1, 6, 11, 24, 25, 33, 34, 35
BUILT_IN_WORKGROUP_SIZE = 25

# Storage classes
UNIFORM_CONSTANT, UNIFORM, PUSH_CONSTANT, STORAGE_BUFFER = 0, 2, 9, 12

# GroupNonUniform and its family, then the older subgroup ballot and vote
SUBGROUP_CAPABILITIES = set(range(61, 69)) | {4423, 4431}

LOOP_UNROLL = 1  # of a loop's control

NO_SPEC_ID = 0xFFFFFFFF


@dataclass
class Binding:
    number: int
    name: str
    reads: bool = False
    writes: bool = False

    @property
    def access(self) -> str:
        return "read_write" if self.reads and self.writes else "write" if self.writes else "read"


@dataclass
class Member:
    name: str
    offset: int
    size: int
    scalar: str


@dataclass
class Struct:
    """A push-constant block, or a struct inside one, as C++ declares it."""

    name: str
    size: int
    members: List[str]  # "float p[4]"


@dataclass
class PushBlock:
    name: str
    size: int
    members: List[Member]
    structs: List[Struct]  # inner ones first, the block itself last


@dataclass
class SpecConstant:
    number: int
    name: str
    default_bits: int


# How a module reaches memory: kernels/include/memory.glsl.
ACCESS_MODES = ["storage", "texel", "pointer"]
# Stands for a kernel that this build cannot compile: the C++ side knows all about it, but there is no module.
DECLARATIONS = "declarations"


@dataclass
class Kernel:
    name: str
    modules: Dict[str, List[int]]  # by access mode: one for storage, unless there are only declarations
    bindings: List[Binding]
    constants: List[SpecConstant]
    push: Optional[PushBlock]
    local_size_ids: Tuple[int, int, int]
    subgroups: bool


def text_of(words: List[int]) -> Tuple[str, int]:
    """A SPIR-V literal string and the number of words it takes."""
    raw = struct.pack(f"<{len(words)}I", *words)
    end = raw.index(b"\0")
    return raw[:end].decode("utf-8"), end // 4 + 1


@dataclass
class Module:
    """The parts of a module that reflection needs, indexed by result id."""

    words: List[int]
    names: Dict[int, str] = field(default_factory=dict)
    member_names: Dict[Tuple[int, int], str] = field(default_factory=dict)
    decorations: Dict[int, Dict[int, List[int]]] = field(default_factory=dict)
    member_decorations: Dict[Tuple[int, int], Dict[int, List[int]]] = field(default_factory=dict)
    types: Dict[int, Tuple[int, List[int]]] = field(default_factory=dict)
    constants: Dict[int, int] = field(default_factory=dict)
    spec_constants: Dict[int, int] = field(default_factory=dict)
    composites: Dict[int, List[int]] = field(default_factory=dict)
    variables: List[Tuple[int, int, int]] = field(default_factory=list)
    capabilities: set = field(default_factory=set)
    entry_points: List[str] = field(default_factory=list)

    def instructions(self):
        at = 5
        while at < len(self.words):
            length, opcode = self.words[at] >> 16, self.words[at] & 0xFFFF
            if length == 0 or at + length > len(self.words):
                raise KernelError("the SPIR-V is cut short")
            yield opcode, self.words[at + 1:at + length], self.words[at:at + length]
            at += length

    @classmethod
    def parse(cls, data: bytes) -> "Module":
        if len(data) < 20 or len(data) % 4 != 0 or struct.unpack_from("<I", data)[0] != MAGIC:
            raise KernelError("not a SPIR-V module")
        module = cls(list(struct.unpack(f"<{len(data) // 4}I", data)))
        for opcode, operands, _ in module.instructions():
            module.take(opcode, operands)
        return module

    def take(self, opcode: int, operands: List[int]) -> None:
        if opcode == OP_NAME:
            self.names[operands[0]] = text_of(operands[1:])[0]
        elif opcode == OP_MEMBER_NAME:
            self.member_names[operands[0], operands[1]] = text_of(operands[2:])[0]
        elif opcode == OP_CAPABILITY:
            self.capabilities.add(operands[0])
        elif opcode == OP_ENTRY_POINT:
            self.entry_points.append(text_of(operands[2:])[0])
        elif opcode == OP_DECORATE:
            self.decorations.setdefault(operands[0], {})[operands[1]] = operands[2:]
        elif opcode == OP_MEMBER_DECORATE:
            self.member_decorations.setdefault((operands[0], operands[1]), {})[operands[2]] = operands[3:]
        elif opcode in (OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_TYPE_IMAGE, OP_TYPE_ARRAY,
                        OP_TYPE_RUNTIME_ARRAY, OP_TYPE_STRUCT, OP_TYPE_POINTER):
            self.types[operands[0]] = (opcode, operands[1:])
        elif opcode == OP_CONSTANT:
            self.constants[operands[1]] = operands[2]
        elif opcode == OP_SPEC_CONSTANT:
            self.spec_constants[operands[1]] = operands[2]
        elif opcode in (OP_SPEC_TRUE, OP_SPEC_FALSE):
            self.spec_constants[operands[1]] = int(opcode == OP_SPEC_TRUE)
        elif opcode == OP_SPEC_COMPOSITE:
            self.composites[operands[1]] = operands[2:]
        elif opcode == OP_VARIABLE:
            self.variables.append((operands[1], operands[0], operands[2]))

    def stripped(self) -> List[int]:
        kept = self.words[:5]
        for opcode, _, whole in self.instructions():
            if opcode not in DEBUG_OPCODES:
                kept.extend(whole)
        return kept

    def decoration(self, target: int, which: int) -> Optional[List[int]]:
        return self.decorations.get(target, {}).get(which)

    def size_of(self, type_id: int) -> int:
        opcode, operands = self.types[type_id]
        if opcode in (OP_TYPE_INT, OP_TYPE_FLOAT):
            return operands[0] // 8
        if opcode == OP_TYPE_VECTOR:
            return self.size_of(operands[0]) * operands[1]
        if opcode == OP_TYPE_ARRAY:
            return self.decorations[type_id][ARRAY_STRIDE][0] * self.constants[operands[1]]
        raise KernelError("a push constant member is neither a scalar, a vector, an array of them nor a struct")

    def scalar_of(self, type_id: int) -> str:
        opcode, operands = self.types[type_id]
        if opcode in (OP_TYPE_ARRAY, OP_TYPE_VECTOR):
            return self.scalar_of(operands[0])
        if opcode == OP_TYPE_FLOAT and operands[0] == 32:
            return "float"
        if opcode == OP_TYPE_INT and operands[0] == 32:
            return "std::int32_t" if operands[1] else "std::uint32_t"
        raise KernelError("a push constant member is not made of 32-bit numbers")


def reflect_bindings(module: Module) -> List[Binding]:
    found: Dict[int, Binding] = {}
    for variable, pointer, storage in module.variables:
        number = module.decoration(variable, BINDING)
        if number is None:
            continue
        if module.decoration(variable, DESCRIPTOR_SET) not in (None, [0]):
            raise KernelError(f"binding {number[0]} is not in descriptor set 0")
        block = module.types[pointer][1][1]
        block_name = module.names.get(block) or module.names.get(variable) or ""
        # memory.glsl calls the views of a slot SLOT_scalars_view, SLOT_vectors_view and so on.
        name = re.sub(r"_(scalars|vectors|texels|words1|words4|pairs|stores|updates)_view$", "", block_name)
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise KernelError(f"binding {number[0]} has no name in the SPIR-V")
        opcode, members = module.types[block]
        if opcode != OP_TYPE_STRUCT:
            members = []

        def is_marked(which: int) -> bool:
            if module.decoration(variable, which) is not None:
                return True
            return bool(members) and all(which in module.member_decorations.get((block, i), {})
                                         for i in range(len(members)))

        binding = found.setdefault(number[0], Binding(number[0], name))
        if binding.name != name:
            raise KernelError(f"binding {number[0]} is both '{binding.name}' and '{name}'")
        # Single halves of words are written by updating the words, which shows a kernel nothing of what was there.
        binding.reads |= not is_marked(NON_READABLE) and not block_name.endswith("_updates_view")
        binding.writes |= storage == STORAGE_BUFFER and not is_marked(NON_WRITABLE)
    return [found[number] for number in sorted(found)]


def reflect_constants(module: Module) -> List[SpecConstant]:
    found: Dict[int, SpecConstant] = {}
    for constant, bits in module.spec_constants.items():
        number = module.decoration(constant, SPEC_ID)
        if number is None:
            continue
        # A workgroup size and the constant naming it share an id and are two constants in SPIR-V.
        known = found.setdefault(number[0], SpecConstant(number[0], "", bits))
        name = module.names.get(constant, "")
        if known.default_bits != bits or (known.name and name and known.name != name):
            raise KernelError(f"specialization constant {number[0]} is declared twice, differently")
        known.name = known.name or name
    # A workgroup size that the kernel itself never asks for leaves no name behind.
    for number, name in zip(reflect_local_size(module), ("group_size", "group_y", "group_z")):
        if number in found and not found[number].name:
            found[number].name = name
    for constant in found.values():
        if not constant.name:
            raise KernelError(f"specialization constant {constant.number} has no name: declare it with constant_id")
    return [found[number] for number in sorted(found)]


def flat_members(module: Module, struct_id: int, prefix: str = "", base: int = 0):
    """The members of a block; those of a struct inside it by their path, "epilogue.div"."""
    for index, type_id in enumerate(module.types[struct_id][1]):
        name = prefix + module.member_names[struct_id, index]
        offset = base + module.member_decorations[struct_id, index][OFFSET][0]
        if module.types[type_id][0] == OP_TYPE_STRUCT:
            yield from flat_members(module, type_id, name + ".", offset)
        else:
            yield Member(name, offset, module.size_of(type_id), module.scalar_of(type_id))


def declared_structs(module: Module, struct_id: int) -> List[Struct]:
    """The struct and those inside it, as C++ declarations without padding."""
    found: List[Struct] = []
    members = []
    at = 0
    for index, type_id in enumerate(module.types[struct_id][1]):
        name = module.member_names[struct_id, index]
        if module.member_decorations[struct_id, index][OFFSET][0] != at:
            raise KernelError(f"push constants have a gap before '{name}'")
        opcode, operands = module.types[type_id]
        if opcode == OP_TYPE_STRUCT:
            inner = declared_structs(module, type_id)
            found += inner
            members.append(f"{inner[-1].name} {name}")
            at += inner[-1].size
            continue
        extent = ""
        if opcode == OP_TYPE_ARRAY:
            extent = f"[{module.constants[operands[1]]}]"
            if module.decorations[type_id][ARRAY_STRIDE][0] != module.size_of(operands[0]):
                raise KernelError(f"the push-constant array '{name}' is not dense: declare the block std430")
        elif opcode == OP_TYPE_VECTOR:
            extent = f"[{operands[1]}]"
        members.append(f"{module.scalar_of(type_id)} {name}{extent}")
        at += module.size_of(type_id)
    return [*found, Struct(module.names[struct_id], at, members)]


def reflect_push(module: Module) -> Optional[PushBlock]:
    blocks = {pointer for _, pointer, storage in module.variables if storage == PUSH_CONSTANT}
    if not blocks:
        return None
    struct_id = module.types[blocks.pop()][1][1]
    members = list(flat_members(module, struct_id))
    size = max(member.offset + member.size for member in members)
    if size > 128:
        raise KernelError(f"{size} bytes of push constants; Vulkan guarantees no more than 128")
    return PushBlock(module.names[struct_id], size, members, declared_structs(module, struct_id))


def reflect_local_size(module: Module) -> Tuple[int, int, int]:
    for composite, parts in module.composites.items():
        if module.decoration(composite, BUILT_IN) == [BUILT_IN_WORKGROUP_SIZE]:
            ids = [module.decoration(part, SPEC_ID) for part in parts]
            x, y, z = (NO_SPEC_ID if number is None else number[0] for number in ids)
            return x, y, z
    return NO_SPEC_ID, NO_SPEC_ID, NO_SPEC_ID


def reflect(name: str, data: bytes) -> Kernel:
    module = Module.parse(data)
    if module.entry_points != ["main"]:
        raise KernelError("there must be one entry point, called main")
    kernel = Kernel(name, {"storage": module.stripped()}, reflect_bindings(module), reflect_constants(module),
                    reflect_push(module), reflect_local_size(module),
                    bool(module.capabilities & SUBGROUP_CAPABILITIES))
    names = [item.name for item in (*kernel.bindings, *kernel.constants)]
    repeated = sorted({item for item in names if names.count(item) > 1})
    if repeated:
        raise KernelError(f"the name '{repeated[0]}' means two things")
    return kernel


def add_mode(kernel: Kernel, mode: str, data: bytes) -> None:
    """Another module of the same kernel, which to the C++ side must look like the first."""
    other = reflect(kernel.name, data)
    same = [("specialization constants", kernel.constants, other.constants), ("push constants", kernel.push, other.push),
            ("workgroup size", kernel.local_size_ids, other.local_size_ids)]
    if mode == "texel":
        same.append(("bindings", [(b.number, b.name, b.access) for b in kernel.bindings],
                     [(b.number, b.name, b.access) for b in other.bindings]))
    for what, ours, theirs in same:
        if ours != theirs:
            raise KernelError(f"its {what} differ between the access modes storage and {mode}")
    kernel.modules[mode] = other.modules["storage"]


# Writing C++

NOTICE = "// Generated by tools/kernelgen.py from the kernels' SPIR-V. Changes here are lost.\n"


@dataclass(frozen=True)
class Program:
    """Elementwise steps that a kernel runs besides its own work: what its include declares in every such kernel."""
    name: str    # of the member of the push constants
    params: str  # the struct that it is
    bindings: Tuple[str, ...]
    constants: Tuple[str, ...]


PROGRAMS = (
    Program("epilogue", "EpilogueParams", ("extra1", "extra2"),
            ("step_count", "step0", "step1", "step2", "step3", "mode1", "mode2")),
    Program("prologue", "PrologueParams", ("in0", "extra0"),
            ("prologue_count", "prologue0", "prologue1", "prologue2", "prologue3", "prologue_mode")),
)


def has_program(kernel: Kernel, program: Program) -> bool:
    return kernel.push is not None and any(item.name == program.params for item in kernel.push.structs)


def program_offset(kernel: Kernel, program: Program) -> str:
    if not has_program(kernel, program):
        return "no_constant"
    return str(min(member.offset for member in kernel.push.members if member.name.startswith(program.name + ".")))


def push_structs(kernels: List[Kernel]) -> str:
    """The push-constant blocks. Kernels that call one alike must mean the same."""
    known: Dict[str, Tuple[Kernel, Struct]] = {}
    out = []
    for kernel in kernels:
        for item in kernel.push.structs if kernel.push else []:
            owner, first = known.setdefault(item.name, (kernel, item))
            if first != item:
                raise KernelError(f"{owner.name} and {kernel.name} lay out {item.name} differently")
            if owner is not kernel or first is not item:
                continue
            members = "".join(f"  {member};\n" for member in item.members)
            out.append(f"\nstruct {item.name} {{\n{members}}};\nstatic_assert(sizeof({item.name}) == {item.size});\n")
    return "".join(out)


def program_names(kernels: List[Kernel], program: Program) -> str:
    """The ids that all kernels with such a program share, in a namespace of their own."""
    out = [f"\n// The same in every kernel that has {program.params}.\nnamespace {program.name} {{\n"]
    for title, names, items in (("Binding", program.bindings, lambda k: k.bindings),
                                ("Constant", program.constants, lambda k: k.constants)):
        numbers: Dict[str, int] = {}
        for kernel in (kernel for kernel in kernels if has_program(kernel, program)):
            own = {item.name: item.number for item in items(kernel)}
            for name in names:
                if name not in own:
                    raise KernelError(f"kernel {kernel.name} has {program.params} without '{name}'")
                if numbers.setdefault(name, own[name]) != own[name]:
                    raise KernelError(f"kernel {kernel.name} numbers '{name}' of the {program.name} differently from others")
        listed = ", ".join(f"{name} = {number}" for name, number in numbers.items())
        out.append(f"enum {title} : std::uint32_t {{ {listed} }};\n")
    return "".join(out) + f"}}  // namespace {program.name}\n"


def header(kernels: List[Kernel]) -> str:
    out = [NOTICE, """#pragma once

#include <cstddef>
#include <cstdint>

namespace brontes::kernels {

""", "enum class Id : std::uint16_t {\n"]
    out += [f"  {kernel.name},\n" for kernel in kernels]
    out.append(f"""}};

inline constexpr std::size_t count = {len(kernels)};

enum class Access : std::uint8_t {{ read, write, read_write }};

// How a module reaches memory: include/memory.glsl.
enum class AccessMode : std::uint8_t {{ {", ".join(ACCESS_MODES)} }};
inline constexpr std::size_t access_modes = {len(ACCESS_MODES)};

// A slot of the kernel. In mode `pointer` it is an entry of a table of addresses, else its number is that
// of a descriptor in set 0: a storage buffer, or in mode `texel` and only read a uniform texel buffer.
struct Binding {{
  std::uint32_t binding;
  Access access;
  const char* name;
}};

struct SpecConstant {{
  std::uint32_t id;
  std::uint32_t default_bits;
  const char* name;
}};

template <class T>
struct View {{
  const T* data;
  std::size_t size;

  constexpr const T* begin() const noexcept {{ return data; }}
  constexpr const T* end() const noexcept {{ return data + size; }}
  constexpr const T& operator[](std::size_t index) const noexcept {{ return data[index]; }}
}};

inline constexpr std::uint32_t no_constant = {NO_SPEC_ID:#x};

struct Kernel {{
  const char* name;
  // Empty where the kernel does not have the mode. Those of the library have a size and no data: spirv::words() has it.
  View<std::uint32_t> modules[access_modes];
  View<Binding> bindings;
  View<SpecConstant> constants;
  std::uint32_t push_bytes;
  std::uint32_t epilogue_offset;  // of EpilogueParams in the push constants, or no_constant
  std::uint32_t prologue_offset;  // of PrologueParams
  bool subgroups;                 // it uses subgroup operations
  // Of a kernel that is not the library's: its entry point, and a hash of its words.
  const char* entry_point = "main";
  std::uint64_t hash = 0;

  constexpr const View<std::uint32_t>& words(AccessMode mode = AccessMode::storage) const noexcept {{
    return modules[static_cast<std::size_t>(mode)];
  }}
  constexpr bool has(AccessMode mode) const noexcept {{ return words(mode).size != 0; }}
}};

const Kernel& get(Id id) noexcept;

// A kernel of the library, by its id, or one that somebody else made and keeps.
class Ref {{
 public:
  Ref(Id id) noexcept : kernel_(&get(id)) {{}}  // NOLINT: implicit by design
  explicit Ref(const Kernel& kernel) noexcept : kernel_(&kernel) {{}}

  const Kernel& kernel() const noexcept {{ return *kernel_; }}
  // Of the library's kernel; `count` for any other.
  std::size_t index() const noexcept;
  bool is_library() const noexcept {{ return index() != count; }}
  friend bool operator==(const Ref&, const Ref&) = default;

 private:
  const Kernel* kernel_;
}};
inline const Kernel& get(Ref kernel) noexcept {{ return kernel.kernel(); }}

// local_size_ids below have no_constant for an axis of the workgroup that is not specialized.
""")
    out.append("\n// The push-constant blocks, as the SPIR-V lays them out.\n")
    out.append(push_structs(kernels))
    out += [program_names(kernels, program) for program in PROGRAMS]
    for kernel in kernels:
        out.append(f"\nnamespace {kernel.name} {{\n")
        if kernel.bindings:
            items = ", ".join(f"{item.name} = {item.number}" for item in kernel.bindings)
            out.append(f"enum Binding : std::uint32_t {{ {items} }};\n")
        if kernel.constants:
            out.append("enum Constant : std::uint32_t {\n")
            out += [f"  {item.name} = {item.number},\n" for item in kernel.constants]
            out.append("};\n")
        axes = ", ".join("no_constant" if axis == NO_SPEC_ID else str(axis) for axis in kernel.local_size_ids)
        out.append(f"inline constexpr std::uint32_t local_size_ids[3] = {{{axes}}};\n")
        if kernel.push:
            out.append(f"using Params = {kernel.push.name};\n")
        out.append(f"}}  // namespace {kernel.name}\n")
    out.append("\n}  // namespace brontes::kernels\n")
    return "".join(out)


def view(kernel: Kernel, what: str, items: Sized) -> str:
    return f"{{{kernel.name}_{what}, {len(items)}}}" if items else "{nullptr, 0}"


def packed(words: List[int]) -> bytes:
    """The words as lib/spirv/words.cpp unpacks them: an LZMA stream without a header, for numbers of four bytes."""
    data = struct.pack(f"<{len(words)}I", *words)
    filters = [{"id": lzma.FILTER_LZMA1, "preset": 9, "lc": 0, "lp": 2, "pb": 2,
                "dict_size": max(4096, len(data))}]
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)


def source(kernels: List[Kernel]) -> str:
    out = [NOTICE, '#include "spirv/words.hpp"\n\n#include <functional>\n\nnamespace brontes::kernels {\nnamespace {\n']
    modules = {(kernel.name, mode): packed(words) for kernel in kernels for mode, words in kernel.modules.items()}
    unpacked_bytes = 4 * sum(len(words) for kernel in kernels for words in kernel.modules.values())
    out.append(f"\n// {unpacked_bytes} bytes of SPIR-V in {sum(map(len, modules.values()))}.\n")
    for kernel in kernels:
        for mode in kernel.modules:
            data = modules[kernel.name, mode]
            out.append(f"\nconstexpr std::uint8_t {kernel.name}_{mode}[] = {{\n")
            for at in range(0, len(data), 24):
                out.append("  " + ",".join(str(byte) for byte in data[at:at + 24]) + ",\n")
            out.append("};\n")
        if kernel.bindings:
            out.append(f"constexpr Binding {kernel.name}_bindings[] = {{\n")
            out += [f'  {{{item.number}, Access::{item.access}, "{item.name}"}},\n' for item in kernel.bindings]
            out.append("};\n")
        if kernel.constants:
            out.append(f"constexpr SpecConstant {kernel.name}_constants[] = {{\n")
            out += [f'  {{{item.number}, {item.default_bits:#x}, "{item.name}"}},\n' for item in kernel.constants]
            out.append("};\n")
    out.append("\nconstexpr Kernel all[] = {\n")
    for kernel in kernels:
        sizes = ", ".join(f"{{nullptr, {len(kernel.modules.get(mode, []))}}}" for mode in ACCESS_MODES)
        out.append(f'  {{"{kernel.name}", {{{sizes}}},\n   '
                   f'{view(kernel, "bindings", kernel.bindings)},\n   {view(kernel, "constants", kernel.constants)}, '
                   f'{kernel.push.size if kernel.push else 0}, '
                   f'{", ".join(program_offset(kernel, program) for program in PROGRAMS)}, '
                   f'{"true" if kernel.subgroups else "false"}}},\n')
    out.append("""};
static_assert(sizeof all / sizeof all[0] == count);

constexpr View<std::uint8_t> all_packed[][access_modes] = {
""")
    for kernel in kernels:
        views = ", ".join(view(kernel, mode, modules.get((kernel.name, mode), b"")) for mode in ACCESS_MODES)
        out.append(f"  {{{views}}},\n")
    out.append("""};
static_assert(sizeof all_packed / sizeof all_packed[0] == count);

}  // namespace

const Kernel& get(Id id) noexcept { return all[static_cast<std::size_t>(id)]; }

View<std::uint8_t> packed(Id id, AccessMode mode) noexcept {
  return all_packed[static_cast<std::size_t>(id)][static_cast<std::size_t>(mode)];
}

std::size_t Ref::index() const noexcept {
  const std::less<const Kernel*> before;
  if (before(kernel_, all) || !before(kernel_, all + count)) return count;
  return static_cast<std::size_t>(kernel_ - all);
}

}  // namespace brontes::kernels
""")
    return "".join(out)


def command_embed(args: argparse.Namespace) -> None:
    kernels: Dict[str, Kernel] = {}
    for item in args.modules:
        label, separator, path = item.partition("=")
        name, _, mode = label.partition(":")
        mode = mode or "storage"
        if not separator or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or mode not in (*ACCESS_MODES, DECLARATIONS):
            raise KernelError(f"'{item}' is not NAME[:ACCESS_MODE]=FILE with a snake_case name")
        if mode in ("storage", DECLARATIONS) and name in kernels:
            raise KernelError(f"two kernels are called {name}")
        if mode not in ("storage", DECLARATIONS) and name not in kernels:
            raise KernelError(f"{name} comes in mode {mode} before it comes in mode storage")
        try:
            with open(path, "rb") as module:
                if mode == "storage":
                    kernels[name] = reflect(name, module.read())
                elif mode == DECLARATIONS:
                    kernels[name] = reflect(name, module.read())
                    kernels[name].modules = {}
                else:
                    add_mode(kernels[name], mode, module.read())
        except OSError as error:
            raise KernelError(f"{path}: {error.strerror}")
        except KernelError as error:
            raise KernelError(f"kernel {name}: {error}")
    ordered = [kernels[name] for name in sorted(kernels)]
    texts = [(args.hpp, header(ordered)), (args.cpp, source(ordered))]
    for path, text in texts:
        update(path, text.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    one = commands.add_parser("compile", help="GLSL to SPIR-V")
    one.add_argument("--glslang", default="glslangValidator")
    one.add_argument("--spirv-opt", default="spirv-opt")
    one.add_argument("--spirv-val", default="spirv-val")
    one.add_argument("--target-env", default="vulkan1.1")
    one.add_argument("-I", dest="include", action="append", default=[], metavar="FOLDER")
    one.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]")
    one.add_argument("--declarations", action="store_true",
                     help="define BRONTES_DECLARATIONS, and keep what nothing uses: for embed's NAME:declarations")
    one.add_argument("--depfile")
    one.add_argument("-o", dest="output", required=True)
    one.add_argument("source")
    one.set_defaults(run=command_compile)

    every = commands.add_parser("embed", help="SPIR-V to C++")
    every.add_argument("--hpp", required=True)
    every.add_argument("--cpp", required=True)
    every.add_argument("modules", nargs="+", metavar="NAME[:ACCESS_MODE|:declarations]=FILE")
    every.set_defaults(run=command_embed)

    args = parser.parse_args()
    try:
        args.run(args)
    except KernelError as error:
        print(f"kernelgen: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
