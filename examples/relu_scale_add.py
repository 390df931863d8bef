"""The same from Python, with no package but ctypes. Usage: relu_scale_add.py LIBBRONTES.SO"""
# snippet: python
import ctypes as c
import sys


class Error(c.Structure):
    _fields_ = [("status", c.c_int32), ("vk_result", c.c_int32), ("message", c.c_char * 1016)]


brontes = c.CDLL(sys.argv[1])
for name in ("upload", "relu", "scale", "add"):
    getattr(brontes, f"brontes_{name}").restype = c.c_uint64  # a tensor is a number


def call(name, *arguments):
    error = Error()
    if getattr(brontes, f"brontes_{name}")(*arguments, c.byref(error)) != 0:
        raise RuntimeError(error.message.decode())


device, batch = c.c_void_p(), c.c_void_p()
call("device_open", None, c.byref(device))
call("batch_create", device, None, c.byref(batch))


def upload(*values):
    data = (c.c_float * len(values))(*values)
    return c.c_uint64(brontes.brontes_upload(batch, data, c.c_size_t(len(values)), None, c.c_size_t(0)))


x, b = upload(1, 2, -3, 4), upload(.5, .5, .5, .5)
y = c.c_uint64(brontes.brontes_relu(batch, x))
y = c.c_uint64(brontes.brontes_scale(batch, y, c.c_float(2)))
y = c.c_uint64(brontes.brontes_add(batch, y, b))

out = (c.c_float * 4)()
call("batch_execute", batch)
call("batch_read", batch, y, out, c.c_size_t(4))
print(*out)  # 2.5 4.5 0.5 8.5

brontes.brontes_batch_destroy(batch)
brontes.brontes_device_destroy(device)
# end
assert list(out) == [2.5, 4.5, 0.5, 8.5]
