"""The provider ``{{ cookiecutter.plugin_id }}``: a server of the OpenAI chat format, as data.

Everything the server does as the format says is inherited. What is particular to it stands in the
row below, what is known of its models in ``models.json``.
"""

from __future__ import annotations

from agent_host_openai_compatible import chat, servers

from {{ cookiecutter.package }}._version import __version__

__all__ = ["{{ cookiecutter.__class }}Provider"]


class {{ cookiecutter.__class }}Provider(chat.ChatCompletionsProvider):
    """The models behind the address in the row, or behind the setting ``base_url``."""

    version = __version__
    optional_api_key = True
    facts_package = "{{ cookiecutter.package }}"
    server = servers.Server(
        name="{{ cookiecutter.plugin_id }}",
        # Where the API is when the config names no other place.
        base_url="http://localhost:8000/v1",
        # Where the server strays from the format; ``servers.QUIRKS`` lists what can be said.
        quirks=("max_tokens",),
{%- if cookiecutter.kind == "mix" %}
        # Its answers name their sources, which the extension keeps.
        tags=("supports_citations",),
{%- endif %}
    )
