"""What data is, told by its content: never by a name, which anybody may choose."""

from __future__ import annotations

import codecs

__all__ = ["decode_text", "sniff_media_type"]

#: How the formats begin that somebody may want to give a model.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
#: A file of this kind may be all letters.
_EVEN_IN_TEXT = (b"%PDF-",)
#: What stands inside a RIFF or IFF container, after its length.
_CONTAINED = {
    (b"RIFF", b"WEBP"): "image/webp",
    (b"RIFF", b"WAVE"): "audio/wav",
    (b"RIFF", b"AVI "): "video/x-msvideo",
    (b"FORM", b"AIFF"): "audio/aiff",
    (b"FORM", b"AIFC"): "audio/aiff",
}
#: Brands of the container that pictures, sounds and films of many makers share.
_BRANDS = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
    b"avif": "image/avif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def sniff_media_type(data: bytes) -> str | None:
    """The media type of what the data is; ``text/plain`` for any text, None for what is unknown."""
    # Some signatures are letters, with which a text may begin too.
    is_text = decode_text(data) is not None
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature) and (signature in _EVEN_IN_TEXT or not is_text):
            return media_type
    contained = _CONTAINED.get((data[:4], data[8:12]))
    if contained is not None:
        return contained
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    if data[:1] == b"\xff" and len(data) > 1 and data[1] & 0xE0 == 0xE0 and not is_text:
        # A frame of MPEG sound without a tag in front; its layer is 0 in those of AAC.
        return "audio/mpeg" if data[1] & 0x06 else "audio/aac"
    return "text/plain" if is_text else None


def decode_text(data: bytes) -> str | None:
    """The text that the data is; None if it is none."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    try:
        text = data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError:  # Nothing is lost: whoever asks says what it is instead.
        return None
    return None if "\0" in text else text
