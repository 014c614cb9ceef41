"""What `agent_hookspecs` offers is pinned, found lazily, and the same for type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import agent_hookspecs
import agent_hookspecs.authoring

AUTHORING = [
    "AccumulatorExtensionMixin",
    "AccumulatorStreamingMixin",
    "CallFragment",
    "EFFORTS",
    "FunctionTool",
    "KNOBS",
    "MAX_ATTACHMENT_BYTES",
    "MAX_TOOL_INDEX",
    "Partial",
    "ReasoningDetails",
    "Rendering",
    "ToolCalls",
    "accumulate_reasoning",
    "accumulate_tool_calls",
    "arguments_problem",
    "attachment",
    "bare_messages",
    "choice_delta",
    "content_fragment",
    "expand_attachments",
    "facts_about",
    "finish_reasoning_details",
    "finish_tool_calls",
    "first_choice",
    "knob_elements",
    "knob_schema",
    "load_facts",
    "merge_delta_content",
    "merge_reasoning_details",
    "merge_text",
    "merge_tool_calls",
    "nearest_effort",
    "plain",
    "reasoning_fragment",
    "refers_to_files",
    "render_history",
    "requested_knobs",
    "retained_count",
    "selected_model",
    "take_knob",
    "taken_call_ids",
    "tool",
    "tool_call_deltas",
    "tool_call_ids",
    "tools",
    "unique_call_id",
]
PUBLIC = [
    "API_VERSION",
    "Action",
    "ActionResult",
    "AgentError",
    "ApprovalRequiredEvent",
    "AuthenticationError",
    "BindingError",
    "CollisionError",
    "Config",
    "ConfigError",
    "ConnectionFailedError",
    "ContentBlockedError",
    "Context",
    "ContextLengthError",
    "ContractError",
    "CoreMessage",
    "DESCRIPTOR_NAME",
    "Descriptor",
    "DescriptorError",
    "DoneEvent",
    "Effect",
    "Entry",
    "ErrorEvent",
    "Event",
    "ExtensionSpec",
    "FeaturePlugin",
    "FeatureSpec",
    "FinalEvent",
    "Framing",
    "GatingError",
    "HookError",
    "HookResultError",
    "HostSpec",
    "IncompatibleError",
    "InvalidRequestError",
    "LoadError",
    "MalformedCallError",
    "MessageMetadata",
    "ModelInfo",
    "ModelNotFoundError",
    "MultipartContent",
    "NativeChunk",
    "NativeMessage",
    "OrderingError",
    "OverloadedError",
    "PartialEvent",
    "PluginError",
    "ProtocolError",
    "ProviderError",
    "ProviderExtensionPlugin",
    "ProviderPlugin",
    "ProviderSpec",
    "RateLimitError",
    "ReasoningEvent",
    "RequestSpec",
    "RequestStartedEvent",
    "RequestTimeoutError",
    "ResolutionError",
    "Role",
    "ServerError",
    "Session",
    "SessionError",
    "SourceError",
    "State",
    "StreamCutError",
    "ToolArgumentsError",
    "ToolCallDeltaEvent",
    "ToolCallEvent",
    "ToolCallStartedEvent",
    "ToolDeniedError",
    "ToolError",
    "ToolPlugin",
    "ToolResult",
    "ToolResultEvent",
    "ToolSpec",
    "ToolStartedEvent",
    "ToolUpdateEvent",
    "TransportError",
    "TurnEndEvent",
    "UnknownPluginError",
    "UnknownToolError",
    "Usage",
    "UsageEvent",
    "WarningEvent",
    "__version__",
    "get_logger",
    "get_warn_from_context",
    "hookimpl",
    "hookspec",
    "redact",
    "remember_secrets",
]


def test_the_public_names_are_these() -> None:
    assert agent_hookspecs.__all__ == PUBLIC
    assert agent_hookspecs.authoring.__all__ == AUTHORING


ROOMS = [
    (room, name)
    for room, names in ((agent_hookspecs, PUBLIC), (agent_hookspecs.authoring, AUTHORING))
    for name in names
]


@pytest.mark.parametrize(("room", "name"), ROOMS, ids=str)
def test_a_public_name_is_what_its_module_defines(room: ModuleType, name: str) -> None:
    module = import_module(f"{room.__name__}.{room._DEFINED_IN[name]}")
    assert getattr(room, name) is getattr(module, name)


def test_dir_shows_the_public_names() -> None:
    assert dir(agent_hookspecs) == PUBLIC


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'agent_hookspecs' has no attribute 'nothing'"):
        _ = agent_hookspecs.nothing


@pytest.mark.parametrize("room", [agent_hookspecs, agent_hookspecs.authoring], ids=str)
def test_type_checkers_see_the_names_that_are_loaded_lazily(room: ModuleType) -> None:
    assert room.__file__ is not None
    tree = ast.parse(Path(room.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        for alias in node.names:
            starred = import_module(node.module).__all__ if alias.name == "*" else [alias.name]
            seen |= dict.fromkeys(starred, node.module)
    assert seen == {name: f"{room.__name__}.{module}" for name, module in room._DEFINED_IN.items()}


def test_importing_the_package_loads_none_of_its_modules() -> None:
    code = "import sys, agent_hookspecs; print(*(m for m in sys.modules if 'hookspecs.' in m))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == []
