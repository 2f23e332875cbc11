"""The containers that runs write, taken apart and put together with lengths and checksums that fit."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import sys
import warnings
import zipfile
import zlib
from pathlib import Path
from random import Random

import numpy as np
from mutate import Codec

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from history_files import event, framed

# -- JSON lines and the like


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _joined(parts: list[bytes], _: Random) -> bytes:
    return b"".join(parts)


LINES = Codec(_lines, _joined)

# -- TensorBoard: length, its checksum, the event, its checksum


def _events(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at + 12 <= len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        found.append(data[at + 12 : at + 12 + length])
        at += 16 + length
    return found


TFEVENTS = Codec(_events, lambda parts, _: b"".join(map(event, parts)))

# -- W&B: records in chunks in blocks of 32 KiB


def _records(data: bytes) -> list[bytes]:
    found, at, begun = [], 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        begun += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            found.append(begun)
            begun = b""
    return found


WANDB = Codec(_records, lambda parts, _: framed(parts))

# -- zip: names and contents in turn; what unpacks to much more is among the contents


def zeros_deflated(mib: int) -> tuple[bytes, int]:
    """Raw deflate of so many MiB of zeros, and their CRC."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(mib):
        crc = zlib.crc32(bytes(1 << 20), crc)
    return block * mib + b"\x03\x00", crc


# 736 MiB of zeros; made with bz2.compress(bytes(736 << 20)), which takes a while
BZ2_ZEROS = base64.b64decode(
    "QlpoOTFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZDgni3wFfjkAAwAAACCAAMIBNRkKgJakKgJcxQVkmU1kOCeLfAV+OQADAAAAIIAAwgE1GQqAlqQqAlzFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZDgni3wFfjkAAwAAACCAAMIBNRkKgJakKgJcxQVkmU1kOCeLfAV+OQADAAAAIIAAwgE1GQqAlqQqAlzFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZDgni3wFfjkAAwAAACCAAMIBNRkKgJakKgJcxQVkmU1kOCeLfAV+OQADAAAAIIAAwgE1GQqAlqQqAlzFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZDgni3wFfjkAAwAAACCAAMIBNRkKgJakKgJcxQVkmU1kOCeLfAV+OQADAAAAIIAAwgE1GQqAlqQqAlzFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZDgni3wFfjkAAwAAACCAAMIBNRkKgJakKgJcxQVkmU1kOCeLfAV+OQADAAAAIIAAwgE1GQqAlqQqAlzFBWSZTWQ4J4t8BX45AAMAAAAggADCATUZCoCWpCoCXMUFZJlNZHRrRjgEeL1AAwAAAEAAIIAAwzAmqaaCVBVtQJUFXi7kinChIKsDMioA="
)


def _members(data: bytes) -> list[bytes]:
    parts = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            parts += [member.filename.encode("utf-8", "replace"), archive.read(member)]
    return parts


def _zip(parts: list[bytes], rng: Random) -> bytes:
    out = io.BytesIO()
    how = rng.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", how) as archive:
        warnings.simplefilter("ignore")  # a name may come twice
        for name, content in zip(parts[::2], parts[1::2], strict=False):
            told = zipfile.ZipInfo(name.decode("utf-8", "replace")[:15_000].replace("\0", "0") or "x")
            told.compress_type = how
            archive.writestr(told, content)
    data = out.getvalue()
    return _bomb(data, parts, rng) if rng.randrange(6) == 0 else data


def _bomb(data: bytes, parts: list[bytes], rng: Random) -> bytes:
    """One member more unpacks to hundreds of megabytes, and the directory tells the truth about it or not."""
    name = rng.choice((*parts[::2], b"x/data/0", b"a.npy")) or b"x"
    if rng.randrange(2):
        packed, crc, method, size = BZ2_ZEROS, rng.randrange(1 << 32), zipfile.ZIP_BZIP2, 736 << 20
    else:
        packed, crc = zeros_deflated(300)
        method, size = zipfile.ZIP_DEFLATED, 300 << 20
    return one_member(name[:200], packed, rng.choice((size, 10)), crc, method)


def one_member(name: bytes, packed: bytes, size: int, crc: int, method: int) -> bytes:
    """A zip of one member that claims what it is told to."""
    facts = struct.pack("<HHHHIIIHH", 0, method, 0, 33, crc, len(packed), size, len(name), 0)
    local = b"PK\x03\x04" + struct.pack("<H", 20) + facts + name + packed
    entry = b"PK\x01\x02" + struct.pack("<HH", 20, 20) + facts + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    return local + entry + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)


ZIP = Codec(_members, _zip)

# -- npy and safetensors: a header with its length, and the rest


def _npy_parts(data: bytes) -> list[bytes]:
    length = struct.unpack_from("<H", data, 8)[0]
    return [data[10 : 10 + length], data[10 + length :]]


def _npy(parts: list[bytes], rng: Random) -> bytes:
    header, rest = parts[0] if parts else b"", b"".join(parts[1:])
    if len(header) < 1 << 16 and rng.randrange(3):
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + rest
    return b"\x93NUMPY" + bytes([rng.choice((2, 3)), 0]) + struct.pack("<I", len(header)) + header + rest


NPY = Codec(_npy_parts, _npy)


def _tensor_parts(data: bytes) -> list[bytes]:
    length = struct.unpack_from("<Q", data)[0]
    return [data[8 : 8 + length], data[8 + length :]]


def _safetensors(parts: list[bytes], _: Random) -> bytes:
    header = parts[0] if parts else b"{}"
    return struct.pack("<Q", len(header)) + header + b"".join(parts[1:])


SAFETENSORS = Codec(_tensor_parts, _safetensors)

# -- pickle: its opcodes


def _opcodes(data: bytes) -> list[bytes]:
    import pickletools

    at = [place for _, _, place in pickletools.genops(data) if place is not None]
    return [data[begin:end] for begin, end in zip(at, [*at[1:], len(data)], strict=True)]


PICKLE = Codec(_opcodes, _joined)
OPCODES = tuple(bytes([code]) for code in range(256) if chr(code).isprintable() or code >= 0x80)
PICKLED = (*OPCODES, b"cos\nsystem\n", b"cnumpy\nndarray\n", b"(lp0\n", b"}q\0", b"\x8c\x05numpy", b"h\0h\0", b"]\x94h\0a", b"2",
           b"(((((", b"ttttt", b"\x85\x85\x85\x85", b"R", b"\x92", b"\x8a\xff", b"\x8b\xff\xff\xff\x7f", b"B\xff\xff\xff\xff")  # fmt: skip

# -- tar within gzip: headers with the checksum that belongs to them


def _tar_blocks(data: bytes) -> list[bytes]:
    plain = gzip.decompress(data)
    return [plain[at : at + 512] for at in range(0, len(plain), 512)]


def _tar(parts: list[bytes], rng: Random) -> bytes:
    blocks = [_summed(part) if part[257:262] == b"ustar" else part for part in parts]
    return gzip.compress(b"".join(blocks), 1, mtime=0)


def _summed(header: bytes) -> bytes:
    header = header[:512].ljust(512, b"\0")
    total = sum(header[:148]) + 8 * 32 + sum(header[156:])
    return header[:148] + b"%06o\0 " % total + header[156:]


TAR_GZ = Codec(_tar_blocks, _tar)


# -- honest files


def npy(values: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(values))
    return out.getvalue()


def npz(packed: bool = False, **arrays: object) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **{name: np.asarray(each) for name, each in arrays.items()})
    return out.getvalue()


def torch_zip() -> bytes:
    """As torch.save writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"global_step": 4000, "epoch": 3, "model": [1.0, 2.0]}, 2))
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", bytes(4000))
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


def sb3_zip() -> bytes:
    """As Stable-Baselines3 saves a model."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", json.dumps({"num_timesteps": 5000, "_total_timesteps": 5000}))
        archive.writestr("policy.pth", torch_zip())
    return out.getvalue()


def safetensors() -> bytes:
    header = json.dumps(
        {"a": {"dtype": "F32", "shape": [2, 5], "data_offsets": [0, 40]}, "__metadata__": {"step": "7"}}
    )
    return struct.pack("<Q", len(header)) + header.encode() + bytes(40)


PACKERS = (gzip.compress, bz2.compress, lzma.compress, zlib.compress)
