"""Checks that pictures and files reach the API byte for byte, from messages and from results."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from agent_host_testing.script import Call, Reply, say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.hosting import Outcome
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.violations import require

__all__ = ["PictureChecks"]

_WHERE = "docs/testing.md#pictures-and-files"
_IMAGES = "supports_images"


def _png(shade: int) -> bytes:
    """A picture of one point that any decoder takes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    point = chunk(b"IDAT", zlib.compress(bytes((0, shade))))
    return b"\x89PNG\r\n\x1a\n" + head + point + chunk(b"IEND", b"")


@dataclass(frozen=True, slots=True)
class _Medium:
    """A file as messages have it; ``claim`` is the tag of providers that take such files."""

    kind: str
    media_type: str
    data: bytes
    claim: str


#: Media by name; their bytes begin as those of real files do.
_MEDIA: Mapping[str, _Medium] = {
    "png": _Medium("image", "image/png", _png(17), _IMAGES),
    "jpeg": _Medium(
        "image", "image/jpeg", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00 kit \xfe\xff\xff\xd9", _IMAGES
    ),
    "gif": _Medium("image", "image/gif", b"GIF89a\x01\x00\x01\x00\x00\xff kit;", _IMAGES),
    "webp": _Medium("image", "image/webp", b"RIFF\x14\x00\x00\x00WEBPVP8 kit\xff\xfe", _IMAGES),
    "pdf": _Medium(
        "file", "application/pdf", b"%PDF-1.4\n%\xe2\xe3 kit\n%%EOF\n", "supports_documents"
    ),
    "wav": _Medium(
        "audio", "audio/wav", b"RIFF\x28\x00\x00\x00WAVEfmt kit\xff\xfe", "supports_audio"
    ),
    "mp4": _Medium("video", "video/mp4", b"\x00\x00\x00\x18ftypmp42 kit\xff\xfe", "supports_video"),
}


def _part(name: str, url: str) -> dict[str, Any]:
    medium = _MEDIA[name]
    content = {"url": url, "name": f"kit.{name}"}
    return {
        "type": medium.kind,
        "content": content,
        "metadata": {"media_type": medium.media_type},
    }


def _data_url(name: str) -> str:
    medium = _MEDIA[name]
    return f"data:{medium.media_type};base64,{base64.b64encode(medium.data).decode('ascii')}"


class PictureChecks(ProviderSuite):
    """Media in messages and results, and the files they may come from."""

    @pytest.mark.parametrize("place", ["message", "result"])
    @check("pictures", _WHERE)
    def test_media_are_sent_whole(self, place: str) -> None:
        """A picture or file is in the request byte for byte, or a warning says that it is not."""
        self.require_wire()
        if place == "result":
            self.require_claim("supports_tools")
        with self.talk() as talk:
            typed = False
            for name, medium in _MEDIA.items():
                talk.again()
                outcome = self._send(talk, place, [_part(name, _data_url(name))])
                sent = Carried(talk.server.requests[-1])
                there = sent.has_bytes(medium.data)
                warned = [event["message"] for event in outcome.of("warning")]
                require(
                    there or warned,
                    f"the bytes of a {name} in a {place} are not sent, and nobody is told",
                )
                if place == "message" and self.claims(medium.claim):
                    told = "; ".join(warned)
                    require(there, f"it claims {medium.claim} and does not send a {name}: {told}")
                if medium.kind == "image" and there:
                    # Some wires do not say what kind of picture it is; the others say it rightly.
                    named = sent.has_text(medium.media_type)
                    require(named or not typed, f"the {name} is not sent as {medium.media_type}")
                    typed = typed or named
                said = sent.has_text("What is it?")
                require(said, "the text beside the medium is not in the request")

    def _send(self, talk: Talk, place: str, parts: list[dict[str, Any]]) -> Outcome:
        core = talk.host.core
        if place == "message":
            talk.session = core.add_message(
                talk.session, "user", "What is it?", multipartContent=parts
            )
            return talk.go_on(say("A point.")).expect()
        talk.ask(Reply((Call("weather", {"place": "Oslo"}, id="call_media_1"),))).expect()
        (made,) = talk.last.calls
        told = {"type": "text", "content": {"text": "What is it?"}}
        envelope = {"type": "tool_result", "text": "What is it?", "content": [told, *parts]}
        about = {"tool_call_id": made.id, "tool_name": made.name}
        talk.session = core.add_message(
            talk.session, "tool", "What is it?", about, toolResult=envelope
        )
        return talk.go_on(say("A point.")).expect()

    @check("pictures", _WHERE)
    def test_pictures_keep_their_places(self) -> None:
        """Several pictures of a message are sent in their order, each once, also in later turns."""
        self.require_wire()
        shades = [_png(shade) for shade in (3, 5, 8)]
        with self.talk(tools=()) as talk:
            urls = [f"data:image/png;base64,{base64.b64encode(d).decode()}" for d in shades]
            self._send(talk, "message", [_part("png", url) for url in urls])
            if not Carried(talk.server.requests[-1]).has_bytes(shades[0]):
                return
            talk.ask(say("Yes."), "And now?").expect()
            sent = Carried(talk.server.requests[-1])
            texts = [base64.b64encode(data).decode().rstrip("=") for data in shades]
            counts = [sum(leaf.value.count(text) for leaf in sent.places(text)) for text in texts]
            require(counts == [1, 1, 1], f"in the second turn they are there {counts} times")
            require(sent.in_order(texts) == texts, "they are not in their order")

    @check("pictures", _WHERE, claim="supports_image_urls")
    def test_pictures_by_address(self) -> None:
        """A picture on the web is sent by its address, to the letter."""
        self.require_wire()
        url = "https://example.org/a%20picture.png?size=1&kind=2"
        with self.talk(tools=()) as talk:
            self._send(talk, "message", [_part("png", url)])
            there = Carried(talk.server.requests[-1]).has_text(url)
            require(there, f"the request does not have the address {url}")

    @check("attachments", _WHERE)
    def test_files_stay_where_they_may_not_be_sent(self, tmp_path: Path) -> None:
        """A file is read only below attachments_root; of any other a warning says why not."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            schema = talk.host.core.get_config_schema(talk.config)
            name, data = "png", _png(99)
            for where, allowed in _files(tmp_path, data):
                talk.again()
                settings = {"attachments_root": str(tmp_path / "root")}
                config = talk.config
                talk.config = {**config, **(settings if where != "no root" else {})}
                outcome = self._send(talk, "message", [_part(name, allowed)])
                talk.config = config
                there = Carried(talk.server.requests[-1]).has_bytes(data)
                warned = outcome.of("warning")
                if where == "inside":
                    known = there or warned or "attachments_root" not in schema
                    require(known, "a file below attachments_root is not sent, and nobody is told")
                else:
                    require(not there, f"a file is sent though it is {where}")
                    require(warned, f"a file that is {where} is left out, and nobody is told")


def _files(folder: Path, data: bytes) -> Iterator[tuple[str, str]]:
    """Files with the same bytes: where they are, and their addresses."""
    root, outside = folder / "root", folder / "outside"
    for each in (root, outside):
        each.mkdir()
        (each / "point.png").write_bytes(data)
    (root / "link.png").symlink_to(outside / "point.png")
    yield "inside", (root / "point.png").as_uri()
    yield "outside of attachments_root", (outside / "point.png").as_uri()
    yield "beside attachments_root", f"{root.as_uri()}/../outside/point.png"
    yield "outside, behind a link", (root / "link.png").as_uri()
    yield "no root", (root / "point.png").as_uri()
