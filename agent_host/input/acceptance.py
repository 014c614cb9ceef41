"""Whether a provider takes what a prompt holds, told by the tags of the request.

``supports_images``, ``supports_audio``, ``supports_video`` and ``supports_documents`` stand for the
formats that everybody with the ability takes, ``accepts:NAME`` for any other by its name;
``supports_image_urls`` and ``supports_file_urls`` for addresses on the web, which providers fetch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent_hookspecs.messages import CoreMessage, MultipartContent
from agent_host.input.errors import InputError

__all__ = ["refuse_unsupported"]

#: The tag that is enough for a media type.
_TAGS = {
    "image/png": "supports_images",
    "image/jpeg": "supports_images",
    "image/gif": "supports_images",
    "image/webp": "supports_images",
    "audio/wav": "supports_audio",
    "audio/mpeg": "supports_audio",
    "video/mp4": "supports_video",
    "video/webm": "supports_video",
    "application/pdf": "supports_documents",
}
#: The tags for parts whose media type nobody knows.
_KIND_TAGS = {
    "image": "supports_images",
    "audio": "supports_audio",
    "video": "supports_video",
    "file": "supports_documents",
}


def refuse_unsupported(
    message: CoreMessage, tags: Collection[str], provider: str, model: str | None
) -> None:
    """Raise `InputError` for the first part that the provider does not take, saying why."""
    for part in message.get("multipartContent") or ():
        kind = part["type"]
        if kind not in _KIND_TAGS:
            # Text goes everywhere; what is native is its own provider's affair.
            continue
        media_type = part.get("metadata", {}).get("media_type")
        sufficient = _sufficient_tags(kind, media_type)
        address = str(part["content"].get("url", ""))
        fetching = "supports_image_urls" if kind == "image" else "supports_file_urls"
        if sufficient and sufficient.isdisjoint(tags):
            raise _refusal(part, media_type or kind, sorted(sufficient), provider, model)
        if address.startswith(("http:", "https:")) and fetching not in tags:
            raise InputError(
                f"{provider} fetches no {media_type or kind} from the web: {address} is not sent",
                part=address,
                hint=f"fetch it yourself and give the data; or add the tag {fetching!r}",
            )


def _sufficient_tags(kind: str, media_type: str | None) -> set[str]:
    if media_type is None:
        return {_KIND_TAGS[kind]}
    known = _TAGS.get(media_type)
    return {f"accepts:{media_type}", *([known] if known else [])}


def _refusal(
    part: MultipartContent, what: str, tags: Iterable[str], provider: str, model: str | None
) -> InputError:
    name = part["content"].get("name") or what
    who = f"{provider} with the model {model!r}" if model else provider
    wanted = " or ".join(repr(tag) for tag in tags)
    return InputError(
        f"{who} takes no {what}: {name} is not sent, and neither is anything else",
        part=str(name),
        hint=f"use another model; or, if this one can, add the tag {wanted} "
        "(add_tags in the config or in settings)",
    )
