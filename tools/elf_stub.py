"""Write a Linux x86-64 shared library whose functions only report an error, with no compiler."""

import struct

FILE_HEADER, PROGRAM_HEADER, PAGE = 64, 56, 4096
BODY = FILE_HEADER + 4 * PROGRAM_HEADER  # where the tables and the code start

# Tags of the dynamic section, which tells the loader where everything else is.
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME = 0, 4, 5, 6, 10, 11, 14
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD

PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
READ_RUN, READ_WRITE = 5, 6

# Entry 0 returns the error number 100, cudaErrorNoDevice; the second entry returns a C string.
RETURN_ERROR = b"\xb8" + struct.pack("<i", 100) + b"\xc3"  # mov eax, 100; ret
RETURN_TEXT = b"\x48\x8d\x05" + struct.pack("<i", 9) + b"\xc3"  # lea rax, [rip + 9]; ret
TEXT_ENTRY = 16
TEXT = b"stub library: no CUDA here\0"
CODE = RETURN_ERROR.ljust(16, b"\0") + RETURN_TEXT.ljust(16, b"\0") + TEXT


def stub_library(soname: str, functions: list[str], stands_for: str) -> bytes:
    """The bytes of a library that exports `functions`; those named ...ErrorString return a text.
    A user's demand of a version has the hash of `stands_for`, the library's name once.
    """
    starts, strings = string_table([soname, *functions])
    tables = {
        DT_SYMTAB: symbol_table(functions, starts),
        DT_STRTAB: strings,
        DT_HASH: hash_table(len(functions)),
        DT_VERSYM: version_table(len(functions)),
        DT_VERDEF: version_definitions(stands_for, starts[soname]),
    }
    body = CODE
    dynamic = [(DT_SONAME, starts[soname]), (DT_STRSZ, len(strings)), (DT_SYMENT, 24)]
    for tag, table in tables.items():
        body = padded(body, 16)
        dynamic.append((tag, BODY + len(body)))
        body += table
    dynamic += [(DT_VERDEFNUM, 2), (DT_NULL, 0)]
    return link(body, b"".join(struct.pack("<2Q", *entry) for entry in dynamic))


def string_table(names: list[str]) -> tuple[dict[str, int], bytes]:
    starts, strings = {}, b"\0"
    for name in names:
        starts[name] = len(strings)
        strings += name.encode() + b"\0"
    return starts, strings


def symbol_table(functions: list[str], starts: dict[str, int]) -> bytes:
    symbols = bytes(24)  # the format wants an empty first symbol
    for name in functions:
        entry = BODY + (TEXT_ENTRY if name.endswith("ErrorString") else 0)
        symbols += struct.pack("<IBBHQQ", starts[name], 0x12, 0, 1, entry, 16)  # global function
    return symbols


def hash_table(functions: int) -> bytes:
    """One bucket with all symbols in one chain: a lookup may be slow in a table this small."""
    chain = [0, *range(2, functions + 1), 0]
    return struct.pack(f"<{3 + len(chain)}I", 1, functions + 1, 1, *chain)


def version_table(functions: int) -> bytes:
    """Give each function version 2, the one that `version_definitions` names after the library.

    NVIDIA's libraries do so, and the loader aborts if a user of `cudaFree@libcudart.so.12` finds
    no such version.
    """
    return struct.pack(f"<{functions + 1}H", 0, *[2] * functions)


def version_definitions(hashed: str, start: int) -> bytes:
    definitions = b""
    for flags, index, following in ((1, 1, 28), (0, 2, 0)):  # the library itself, then its version
        head = struct.pack("<4H", 1, flags, index, 1)
        definitions += head + struct.pack("<5I", sysv_hash(hashed), 20, following, start, 0)
    return definitions


def sysv_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def link(body: bytes, dynamic: bytes) -> bytes:
    """Put the headers before `body` and `dynamic` on a page of its own; addresses are offsets."""
    read_only = BODY + len(body)
    dynamic_at = len(padded(bytes(read_only), PAGE))
    ident, shared, x86_64 = b"\x7fELF\x02\x01\x01", 3, 62
    header = struct.pack("<16s2HI3Q", ident, shared, x86_64, 1, 0, FILE_HEADER, 0)
    header += struct.pack("<I6H", 0, FILE_HEADER, PROGRAM_HEADER, 4, 64, 0, 0)
    segments = (
        (PT_LOAD, READ_RUN, 0, read_only, PAGE),
        (PT_LOAD, READ_WRITE, dynamic_at, len(dynamic), PAGE),
        (PT_DYNAMIC, READ_WRITE, dynamic_at, len(dynamic), 8),
        (PT_GNU_STACK, READ_WRITE, 0, 0, 16),  # without it the loader asks for a stack that can run
    )
    for kind, access, start, size, alignment in segments:
        header += struct.pack("<2I6Q", kind, access, start, start, start, size, size, alignment)
    return padded(header + body, PAGE) + dynamic


def padded(data: bytes, alignment: int) -> bytes:
    return data + bytes(-len(data) % alignment)
