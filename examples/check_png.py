"""Checks that a PNG is whole and shows what example-offscreen draws: waves, with the noise gone.

Usage: check_png.py PROGRAM-AND-ARGUMENTS... OUT.png
"""

import math
import struct
import subprocess
import sys
import zlib


def main() -> int:
    path = sys.argv[-1]
    subprocess.run(sys.argv[1:], check=True)
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        body = data[at + 4:at + 8 + length]
        (crc,) = struct.unpack(">I", data[at + 8 + length:at + 12 + length])
        assert zlib.crc32(body) == crc, "a chunk is damaged"
        chunks[body[:4]] = body[4:]
        at += 12 + length
    assert at == len(data) and b"IEND" in chunks
    width, height, depth, color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, color) == (8, 0)
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == height * (width + 1)
    squares = 0.0
    for y in range(height):
        assert rows[y * (width + 1)] == 0
        for x in range(width):
            clean = 0.5 + 0.3 * math.sin((x + 0.5) / 12) * math.cos((y + 0.5) / 9)
            squares += (rows[y * (width + 1) + 1 + x] / 255 - clean) ** 2
    error = math.sqrt(squares / (width * height))
    print(f"{width} x {height}, off by {error:.4f}")
    return 0 if error < 0.03 else 1


if __name__ == "__main__":
    sys.exit(main())
