"""What the tests of what readers copy expect: a refusal in one sentence, equal pytrees."""

import struct
import zlib
from pathlib import Path

import jax
import numpy as np

from benchmarks.contract import Refused


def refusal(said, call, kind=ValueError) -> str:
    """The sentence of this kind of error that `call()` raises. Raises Refused if it raises none."""
    try:
        call()
    except kind as error:
        message = str(error)
    except Exception as error:
        found = f"raises {type(error).__name__}, no {kind.__name__}"
        raise Refused(f"{said}: {found}: {error}") from error
    else:
        raise Refused(f"{said}: goes through.")
    if "\n" in message:
        raise Refused(f"{said}: says more than a sentence: {message}")
    return message


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """A part of a PNG file, with its length and its checksum."""
    part = kind + body
    return struct.pack(">I", len(body)) + part + struct.pack(">I", zlib.crc32(part))


def write_deep_rgb(file: Path) -> Path:
    """A PNG in RGB of 16 bits a channel, of which Pillow reads the upper half of each value."""
    rows = (b"\0" + struct.pack(">HHH", 1_000, 30_000, 65_535) * 40) * 32
    head = struct.pack(">IIBBBBB", 40, 32, 16, 2, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    chunks = [png_chunk(kind, body) for kind, body in parts]
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    return file


def same(one, other) -> bool:
    """Whether two pytrees have equal arrays."""
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


def refuses_lost_arrays(dataset_of) -> None:
    """Arrays whose mask, names or lengths would be lost are refused before TensorFlow has them."""
    numbers = np.ma.masked_equal(np.arange(8.0), 3)
    labels = np.arange(8)
    for images in (numbers, labels.astype(str), labels[1:]):
        refusal("arrays", lambda images=images: dataset_of(images, labels))
