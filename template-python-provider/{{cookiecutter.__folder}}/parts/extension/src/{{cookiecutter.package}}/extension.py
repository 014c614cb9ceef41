"""The extension ``{{ cookiecutter.__snake ~ "_citations" if cookiecutter.kind == "mix" else cookiecutter.plugin_id }}``: searches the web and keeps the sources.

It shows the three jobs of an extension: it adds an option to the request, picks up from chunks what
the provider does not keep, and carries that into the metadata of the message. Chunks are
OpenAI-like: addresses in ``citations``, or ``annotations`` of the type ``url_citation``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent_hookspecs import Config, CoreMessage, NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import first_choice

from {{ cookiecutter.package }}._version import __version__

__all__ = ["Citations"]

Messages = list[dict[str, Any]]


class Citations(ProviderExtensionPlugin):
    """Puts ``[{"url", "title"}]`` at ``metadata["citations"]`` of answers that name sources."""

    name = "{{ cookiecutter.__snake ~ '_citations' if cookiecutter.kind == 'mix' else cookiecutter.plugin_id }}"
    version = __version__
{%- if cookiecutter.kind == "mix" %}
    required_tags = ("provider:{{ cookiecutter.plugin_id }}", "supports_citations")
{%- else %}
    required_tags = ("supports_citations",)
{%- endif %}

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "search_context": {
                "type": "string",
                "enum": ["low", "medium", "high"],
                "required": False,
                "description": "How much of the web the model may read; "
                "nothing is searched without it.",
            }
        }

    def init(self, config: Config, state: State) -> State:
        # By address: servers repeat their sources in every chunk.
        return {**state, "citations": {}}

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        size = state["config"].get("search_context")
        if size:
            payload = state["request"].setdefault("payload", {})
            payload.setdefault("web_search_options", {"search_context_size": size})
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        for citation in _citations(native_chunk):
            state["citations"].setdefault(citation["url"], citation)
        return partial_messages, final_messages, native_messages, state

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        if state["citations"] and final_messages:
            final, found = final_messages[-1], [*state["citations"].values()]
            # In place, because the same message stands in the history; _metadata is never sent.
            final["_metadata"] = {**(final.get("_metadata") or {}), "citations": found}
        return final_messages, native_messages, state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [_cited(*pair) for pair in zip(native_messages, messages, strict=True)]


def _citations(chunk: Any) -> Iterator[dict[str, str]]:
    if not isinstance(chunk, dict):
        return
    for url in _listed(chunk.get("citations")):
        if isinstance(url, str):
            yield {"url": url}
    choice = first_choice(chunk)
    for body in (choice.get("delta"), choice.get("message")):
        for note in _listed(body.get("annotations")) if isinstance(body, dict) else ():
            source = note.get("url_citation") if isinstance(note, dict) else None
            if isinstance(source, dict) and isinstance(source.get("url"), str):
                title = source.get("title")
                yield {"url": source["url"], **({"title": str(title)} if title else {})}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cited(native: NativeMessage, message: CoreMessage) -> CoreMessage:
    found = (native.get("_metadata") or {}).get("citations")
    if not found:
        return message
    cited: CoreMessage = {**message, "metadata": {**message["metadata"], "citations": found}}
    return cited
