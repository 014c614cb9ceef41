{%- set kind, mixed = cookiecutter.kind, cookiecutter.kind == "mix" -%}
"""What the contract asks of every plugin of its role, checked by the conformance kit."""

from __future__ import annotations

{% if kind == "feature-tool" -%}
from pathlib import Path
from typing import Any, ClassVar

{% elif kind == "store" -%}
from collections.abc import Mapping
from pathlib import Path
from typing import Any

{% elif kind != "feature" -%}
from typing import Any, ClassVar

{% endif -%}
{% if kind == "openai-compatible" -%}
from agent_host_testing import ProviderConformance

from fake_api import WIRE
{%- elif kind == "custom-format" -%}
from agent_host_testing import ExtensionConformance, ProviderConformance

from fake_api import WIRE
{%- elif kind == "extension" -%}
from agent_host_testing import ExtensionConformance
{%- elif kind == "feature" -%}
from agent_host_testing import FeatureConformance
{%- elif kind == "feature-tool" -%}
from agent_host_testing import FeatureConformance, ToolConformance
{%- elif kind == "store" -%}
from agent_host_testing import SessionStoreConformance
{%- elif kind == "tool" -%}
from agent_host_testing import ToolConformance
{%- else -%}
from agent_host_testing import ExtensionConformance, ProviderConformance, ToolConformance

from fake_api import WIRE
{%- endif %}
{%- if kind in ("openai-compatible", "custom-format", "mix") %}


class TestProvider(ProviderConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.plugin_id }}"
    wire = WIRE
    settings: ClassVar[dict[str, Any]] = {"model": "big-think"}
    key_variable = "{{ cookiecutter.__variable }}_API_KEY"
    # A claim that gets lost fails, instead of leaving its checks out.
    expects = (
{%- if mixed %}
        "supports_citations",
{%- endif %}
        "supports_reasoning",
        "supports_streaming",
        "supports_tools",
    )
    reasoning_settings: ClassVar[dict[str, Any]] = {"effort": "high"}
{%- if kind != "custom-format" %}
    # The extensions of the format belong to another package.
    also = ("agent_host_openai_compatible",)
    # What is done with reasoning of earlier turns is not seen in a plain request.
    quiet_settings = ("replay_reasoning",)
{%- endif %}
{%- endif %}
{%- if kind == "custom-format" %}


class TestTools(ExtensionConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.__snake }}_tools"
    provider = "{{ cookiecutter.plugin_id }}"
    expects = ("initialize_request",)
    wire = WIRE


class TestReasoning(ExtensionConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.__snake }}_reasoning"
    provider = "{{ cookiecutter.plugin_id }}"
    expects = ("initialize_request",)
    wire = WIRE
    settings: ClassVar[dict[str, Any]] = {"effort": "high"}
{%- endif %}
{%- if kind in ("extension", "mix") %}


class TestExtension(ExtensionConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.__snake ~ '_citations' if mixed else cookiecutter.plugin_id }}"
{%- if mixed %}
    provider = "{{ cookiecutter.plugin_id }}"
    also = ("agent_host_openai_compatible",)
{%- else %}
    also = ("agent_host_echo",)
{%- endif %}
    expects = ("finalize", "from_native_messages", "init", "initialize_request", "process_chunk")
    wire = "openai.chat"
    settings: ClassVar[dict[str, Any]] = {"search_context": "low"}
{%- endif %}
{%- if kind in ("feature", "feature-tool") %}


class TestFeature(FeatureConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.plugin_id }}"
{%- if kind == "feature" %}
    expects = ("get_actions", "init", "initialize_request")
{%- endif %}
{%- endif %}
{%- if kind == "feature-tool" %}


class TestTool(ToolConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.__snake }}_notes"
    samples: ClassVar[dict[str, Any]] = {
        "{{ cookiecutter.__snake }}_remember": {"note": "Her name is Ada."},
        "{{ cookiecutter.__snake }}_forget": {"note": "Tea."},
    }

    def prepare_world(self, folder: Path) -> dict[str, Any]:
        file = folder / "notes.txt"
        file.write_text("Tea.\n", "utf-8")
        return {"{{ cookiecutter.__snake }}_file": str(file)}
{%- endif %}
{%- if kind == "store" %}


class TestStore(SessionStoreConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.plugin_id }}"

    def choose_place(self, folder: Path) -> tuple[str, Mapping[str, Any]]:
        return f"{{ cookiecutter.__scheme }}://{folder}/sessions.db", {}
{%- endif %}
{%- if kind in ("tool", "mix") %}


class TestTool(ToolConformance):
    package = "{{ cookiecutter.package }}"
    plugin = "{{ cookiecutter.__snake ~ '_units' if mixed else cookiecutter.plugin_id }}"
    samples: ClassVar[dict[str, Any]] = {
        "{{ cookiecutter.__snake }}_convert": {"value": 5, "source": "km", "target": "mi"},
        "{{ cookiecutter.__snake }}_units": {},
    }
{%- endif %}
