#!/usr/bin/env python3
"""Makes the prebuilt CUDA library of llama.cpp small enough to carry to a machine without a network, and usable with a driver of CUDA 13.0.

    fatbin.py cut LIBRARY OUT       keeps the PTX for sm_90 of each fat binary and zeros in place of the rest: 159 MB become 13 packed
    fatbin.py compile LIBRARY OUT   on the machine with the GPU: marks the PTX as 9.0 and puts ptxas's machine code of it in its place

The package has machine code for sm_86, 89, 120 and 121; a Hopper card takes the PTX for sm_90, which says version 9.1 (CUDA 13.1) and is refused by a
driver of 13.0, though nothing in it needs more than 9.0. OUT.json beside the library says where each fat binary lies and how much room it has. Payloads are
packed by zstd: the zstd command, or the Python package pyarrow.

Form of a fat binary, as cuobjdump shows it: a header of 16 bytes (magic, version, its own size, size of what follows), then entries: kind (1 PTX, 2 machine code),
size of the entry's header and of its payload; at 16 the packed size, at 24 the version, at 28 the machine, at 40 flags, at 56 the unpacked size.
"""
import concurrent.futures
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, CODE, SM = 1, 2, 90
PACKED = 0x8000  # flag: zstd


def zstd(data, *how):
    return subprocess.run(["zstd", "-q", "-c", *how], input=data, capture_output=True, check=True).stdout


def pack(data):
    try:
        return zstd(data, "-19")
    except FileNotFoundError:
        import pyarrow
        return pyarrow.compress(data, codec="zstd", asbytes=True)


def unpack(data, size):
    try:
        return zstd(data, "-d")
    except FileNotFoundError:
        import pyarrow
        return pyarrow.decompress(data, decompressed_size=size, codec="zstd", asbytes=True)


class Entry:
    def __init__(self, data, at):
        self.at, self.kind = at, struct.unpack_from("<H", data, at)[0]
        self.header_bytes, self.payload_bytes = struct.unpack_from("<IQ", data, at + 4)
        self.packed_bytes, = struct.unpack_from("<I", data, at + 16)
        self.machine, = struct.unpack_from("<I", data, at + 28)
        self.flags, = struct.unpack_from("<Q", data, at + 40)
        self.unpacked_bytes, = struct.unpack_from("<Q", data, at + 56)
        self.header = bytes(data[at:at + self.header_bytes])

    def payload(self, data):
        at = self.at + self.header_bytes
        raw = bytes(data[at:at + (self.packed_bytes or self.payload_bytes)])
        return unpack(raw, self.unpacked_bytes) if self.flags & PACKED else raw


def fat_binaries(data):
    """(offset, bytes of the header, bytes behind it) of each."""
    at = data.find(MAGIC)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        real = version == 1 and header == 16 and 0 < size < 1 << 28 and at % 8 == 0
        if real:
            yield at, header, size
        at = data.find(MAGIC, at + (header + size if real else 4))


def entries(data, at, header, size):
    place = at + header
    while place < at + header + size:
        e = Entry(data, place)
        yield e
        place += e.header_bytes + e.payload_bytes


def replace(data, at, header, room, entry_header, payload, fields):
    """Makes a fat binary hold one entry; False where it has no room for it. fields: (format, offset, value) of the entry's header."""
    payload += bytes(-len(payload) % 8)
    if len(entry_header) + len(payload) > room:
        return False
    h = bytearray(entry_header)
    struct.pack_into("<Q", h, 8, len(payload))
    for form, offset, value in fields:
        struct.pack_into(form, h, offset, value)
    body = bytes(h) + payload
    data[at + header:at + header + room] = body + bytes(room - len(body))
    struct.pack_into("<Q", data, at + 8, len(body))
    return True


def wanted(text):
    """Products of many rows are a fat binary for each type of weights: only those of Q4_0 and Q4_K are."""
    names = re.findall(rb"\.entry\s+(\w+)", text)
    types = {int(n) for name in names for n in re.findall(rb"ggml_type(\d+)E", name)}
    return not all(b"mul_mat_q" in name for name in names) or bool(types & {2, 12})


def cut(source, target):
    with open(source, "rb") as f:
        data = bytearray(f.read())

    kept = []
    for at, header, size in list(fat_binaries(data)):
        all_of = list(entries(data, at, header, size))
        ptx = next((e for e in all_of if e.kind == PTX and e.machine == SM), None)
        code = next((e for e in all_of if e.kind == CODE), None)
        if ptx is None or not wanted(ptx.payload(data)):
            data[at + header:at + header + size] = bytes(size)
            struct.pack_into("<Q", data, at + 8, 0)
            continue
        start = ptx.at + ptx.header_bytes
        if not replace(data, at, header, size, ptx.header, bytes(data[start:start + (ptx.packed_bytes or ptx.payload_bytes)]), []):
            sys.exit(f"{source}: the fat binary at {at} has no room for its own PTX")
        kept.append({"at": at, "header": header, "room": size, "code": code.header.hex() if code else ""})
    with open(target, "wb") as f:
        f.write(data)
    with open(target + ".json", "w", encoding="utf-8") as f:
        json.dump(kept, f)
    print(f"{len(kept)} fat binaries kept")


def compile_all(source, target, limit=150):
    """What takes longer than limit seconds in all stays PTX."""
    with open(source, "rb") as f:
        data = bytearray(f.read())
    with open(source + ".json", encoding="utf-8") as f:
        kept = json.load(f)

    def one(place):
        size, = struct.unpack_from("<Q", data, place["at"] + 8)
        ptx = next(entries(data, place["at"], place["header"], size))
        base, text = os.path.join(scratch, str(place["at"])), ptx.payload(data)
        if text.count(b".version 9.1") != 1:
            sys.exit(f"{source}: got PTX that begins {text[:60]!r}, want version 9.1: another package than this script was written for")
        with open(base + ".ptx", "wb") as f:
            f.write(text.rstrip(b"\0").replace(b".version 9.1", b".version 9.0"))
        try:
            run = subprocess.run(["ptxas", f"-arch=sm_{SM}", "-O3", base + ".ptx", "-o", base + ".cubin"], capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return place, None
        if run.returncode:
            return place, None
        with open(base + ".cubin", "rb") as f:
            return place, f.read()

    compiled = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for place, code in pool.map(one, sorted(kept, key=lambda p: -p["room"])):
            if code is None or not place["code"]:
                continue
            payload = pack(code)
            compiled += replace(data, place["at"], place["header"], place["room"], bytes.fromhex(place["code"]), payload,
                                [("<I", 16, len(payload)), ("<I", 28, SM), ("<Q", 56, len(code))])
    with open(target, "wb") as f:
        f.write(data)
    print(f"{compiled} of {len(kept)} fat binaries compiled")


if __name__ == "__main__":
    commands = {"cut": cut, "compile": compile_all}
    if len(sys.argv) != 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
