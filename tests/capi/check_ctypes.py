#!/usr/bin/env python3
"""Uses the shared library from Python through ctypes, with nothing but the standard library, and unloads it
afterwards.

Usage: check_ctypes.py LIBBRONTES.SO
"""

import _ctypes
import ctypes
import pathlib
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p


class Error(ctypes.Structure):
    _fields_ = [("status", c_int32), ("vk_result", c_int32), ("message", c_char * 1016)]


class DeviceOptions(ctypes.Structure):
    """The members up to the one that is needed: later ones are the library's business."""
    _fields_ = [("struct_size", c_size_t), ("select", c_char_p)]


class Stats(ctypes.Structure):
    _fields_ = [(name, c_size_t if name == "struct_size" else c_uint64) for name in (
        "struct_size", "operations", "values", "dropped_operations", "fused_operations", "dispatches", "barriers",
        "boundary_barriers", "submits", "transfers_up", "transfers_down")]


class Failure(Exception):
    pass


class Library:
    """Calls by name: brontes.batch_execute(batch) raises Failure unless the status is 0."""

    TENSOR = {"upload": [c_void_p, POINTER(c_float), c_size_t, POINTER(c_uint64), c_size_t],
              "relu": [c_void_p, c_uint64],
              "scale": [c_void_p, c_uint64, c_float],
              "add": [c_void_p, c_uint64, c_uint64],
              "matmul": [c_void_p, c_uint64, c_uint64, c_void_p],
              "sum": [c_void_p, c_uint64, POINTER(c_int64), c_size_t, c_int]}
    STATUS = {"device_open": [POINTER(DeviceOptions), POINTER(c_void_p)],
              "batch_create": [c_void_p, c_void_p, POINTER(c_void_p)],
              "batch_execute": [c_void_p],
              "batch_compile": [c_void_p, POINTER(c_void_p)],
              "batch_read": [c_void_p, c_uint64, POINTER(c_float), c_size_t],
              "batch_error": [c_void_p],
              "batch_dump": [c_void_p, c_int32, c_int32, POINTER(c_char_p)],
              "batch_get_stats": [c_void_p, POINTER(Stats)],
              "program_write": [c_void_p, c_uint64, POINTER(c_float), c_size_t],
              "program_run": [c_void_p],
              "program_read": [c_void_p, c_uint64, POINTER(c_float), c_size_t]}

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.brontes_version.restype = c_char_p
        self.library.brontes_status_name.restype = c_char_p
        for name in ("device_destroy", "batch_destroy", "program_destroy", "free"):
            function = getattr(self.library, f"brontes_{name}")
            function.argtypes, function.restype = [c_void_p], None
            setattr(self, name, function)
        for name, types in self.TENSOR.items():
            function = getattr(self.library, f"brontes_{name}")
            function.argtypes, function.restype = types, c_uint64
            setattr(self, name, function)
        for name, types in self.STATUS.items():
            function = getattr(self.library, f"brontes_{name}")
            function.argtypes, function.restype = [*types, POINTER(Error)], c_int32
            setattr(self, name, self.checked(function))

    def checked(self, function):
        def call(*arguments):
            error = Error()
            status = function(*arguments, byref(error))
            if status != error.status:
                raise Failure(f"returned {status} and wrote {error.status}")
            if status != 0:
                raise Failure(f"{self.library.brontes_status_name(status).decode()}: {error.message.decode()}")
        return call


def floats(*values):
    return (c_float * len(values))(*values)


def expect(what, got, wanted):
    if list(got) != list(wanted):
        sys.exit(f"{what}: {list(got)} instead of {list(wanted)}")


def check_unloaded(handle, path):
    """Nothing keeps the library: no storage per thread with a destructor, no symbol that is unique in the process."""
    path = str(pathlib.Path(path).resolve())
    maps = pathlib.Path("/proc/self/maps")
    if not maps.exists():
        return
    if path not in maps.read_text():
        sys.exit(f"{path} is not loaded")
    _ctypes.dlclose(handle)
    if path in maps.read_text():
        sys.exit(f"{path} is still loaded after dlclose()")


def main() -> int:
    brontes = Library(sys.argv[1])
    device, batch, program = c_void_p(), c_void_p(), c_void_p()
    brontes.device_open(DeviceOptions(ctypes.sizeof(DeviceOptions), None), byref(device))
    brontes.batch_create(device, None, byref(batch))

    x = brontes.upload(batch, floats(1, 2, -3, 4), 4, None, 0)
    b = brontes.upload(batch, floats(.5, .5, .5, .5), 4, None, 0)
    out = brontes.add(batch, brontes.scale(batch, brontes.relu(batch, x), 2), b)
    brontes.batch_compile(batch, byref(program))
    brontes.batch_execute(batch)
    y = floats(0, 0, 0, 0)
    brontes.batch_read(batch, out, y, 4)
    expect("relu -> scale -> add", y, [2.5, 4.5, .5, 8.5])
    stats = Stats(ctypes.sizeof(Stats))
    brontes.batch_get_stats(batch, byref(stats))
    expect("counts", [stats.operations, stats.dispatches, stats.submits], [3, 1, 1])

    a = brontes.upload(batch, floats(1, 2, 3, 4, 5, 6), 6, (c_uint64 * 2)(2, 3), 2)
    c = brontes.matmul(batch, a, brontes.upload(batch, floats(1, 2, 3, 4, 5, 6), 6, (c_uint64 * 2)(3, 2), 2), None)
    total = brontes.sum(batch, a, (c_int64 * 1)(0), 1, 0)
    text = c_char_p()
    brontes.batch_dump(batch, 0, 0, byref(text))
    if b"matmul 2x3x2" not in text.value:
        sys.exit(f"no product in the recording: {text.value.decode()}")
    brontes.free(text)
    brontes.batch_execute(batch)
    brontes.batch_read(batch, c, y, 4)
    expect("matmul", y, [22, 28, 49, 64])
    z = floats(0, 0, 0)
    brontes.batch_read(batch, total, z, 3)
    expect("sum", z, [5, 7, 9])

    try:
        brontes.relu(batch, 12345)
        brontes.batch_execute(batch)
        sys.exit("a number that is no tensor was taken")
    except Failure as failure:
        if "invalid_tensor: relu" not in str(failure):
            raise
    brontes.batch_destroy(batch)

    for frame in range(3):
        brontes.program_write(program, x, floats(frame, -1, 1, 2), 4)
        brontes.program_run(program)
        brontes.program_read(program, out, y, 4)
        expect(f"frame {frame}", y, [2 * frame + .5, .5, 2.5, 4.5])
    brontes.program_destroy(program)
    brontes.device_destroy(device)
    version = brontes.library.brontes_version().decode()
    check_unloaded(brontes.library._handle, sys.argv[1])
    print(f"brontes {version} through ctypes: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
