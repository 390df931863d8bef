#!/usr/bin/env python3
"""Makes the static library: one object whose only global names are the public ones, and these are hidden.

Usage: seal_archive.py --output LIB.A --objcopy PROGRAM --ar PROGRAM ARCHIVE --cxx COMPILER...

An archive of the objects as they are has every private function as a global name, and a shared library that links it
exports the public ones again. So the objects are linked into one, all names but the public become local, and the public
ones get hidden visibility: a program or plug-in can call them, and nobody else sees them. For ELF and GNU ld.
"""
import argparse
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

# Namespace brontes with its type information, and the C functions.
PUBLIC = re.compile(rb"_Z(T[VTIS]|GV)?N[rVK]*[RO]?7brontes|brontes_")

SHT_SYMTAB, SHN_UNDEF, STB_LOCAL, STV_DEFAULT, STV_HIDDEN = 2, 0, 0, 0, 2


class Object:
    """The symbol table of a relocatable ELF file, with what is needed to change a symbol's visibility."""

    def __init__(self, path):
        self.path = path
        self.data = bytearray(path.read_bytes())
        if self.data[:4] != b"\x7fELF":
            sys.exit(f"{path} is no ELF file")
        self.order = "<" if self.data[5] == 1 else ">"
        self.wide = self.data[4] == 2
        offset = self.unpack("Q" if self.wide else "I", 0x28 if self.wide else 0x20)[0]
        size, count = self.unpack("HH", 0x3A if self.wide else 0x2E)
        if count == 0:  # more sections than fit: the number is in the first one
            count = self.section(offset)["size"]
        sections = [self.section(offset + size * index) for index in range(count)]
        self.symbols = next(section for section in sections if section["type"] == SHT_SYMTAB)
        self.strings = sections[self.symbols["link"]]

    def unpack(self, form, offset):
        return struct.unpack_from(self.order + form, self.data, offset)

    def section(self, at):
        names = ("name", "type", "flags", "address", "offset", "size", "link")
        return dict(zip(names, self.unpack("IIQQQQI" if self.wide else "IIIIIII", at)))

    def defined(self):
        """(name, visibility, position of st_other) of every global or weak symbol that is defined here."""
        step = 24 if self.wide else 16
        for at in range(self.symbols["offset"], self.symbols["offset"] + self.symbols["size"], step):
            name = self.unpack("I", at)[0]
            info, other, section = self.unpack("BBH", at + (4 if self.wide else 12))
            if info >> 4 == STB_LOCAL or section == SHN_UNDEF:
                continue
            begin = self.strings["offset"] + name
            yield bytes(self.data[begin:self.data.index(b"\0", begin)]), other & 3, at + (5 if self.wide else 13)

    def hide_all(self):
        for _, _, other in list(self.defined()):
            self.data[other] = self.data[other] & ~3 | STV_HIDDEN
        self.path.write_bytes(self.data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--objcopy", default="objcopy")
    parser.add_argument("--ar", default="ar")
    parser.add_argument("--cxx", nargs=argparse.REMAINDER, required=True)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="seal-", dir=arguments.output.parent) as folder:
        scratch = pathlib.Path(folder)
        whole, sealed, names = scratch / "whole.o", scratch / "brontes.o", scratch / "public.txt"
        # Groups are dissolved: one that the linker drops in favour of the program's would leave local names undefined.
        subprocess.run([*arguments.cxx, "-r", "-nostdlib", "-Wl,--force-group-allocation", "-Wl,--whole-archive",
                        arguments.archive, "-Wl,--no-whole-archive", "-o", str(whole)], check=True)
        public = sorted(name for name, visibility, _ in Object(whole).defined()
                        if visibility == STV_DEFAULT and PUBLIC.match(name))
        if not public:
            sys.exit(f"{arguments.archive} has no public names")
        names.write_bytes(b"\n".join(public) + b"\n")
        subprocess.run([arguments.objcopy, f"--keep-global-symbols={names}", str(whole), str(sealed)], check=True)
        Object(sealed).hide_all()
        archive = scratch / "archive.a"
        subprocess.run([arguments.ar, "rcsD", str(archive), str(sealed)], check=True)
        os.replace(archive, arguments.output)


if __name__ == "__main__":
    main()
