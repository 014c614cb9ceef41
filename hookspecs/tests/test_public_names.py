"""What `agent_hookspecs` offers is pinned, found lazily, and the same for type checkers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import agent_hookspecs
import agent_hookspecs.authoring
import agent_hookspecs.batch
import agent_hookspecs.protection
import agent_hookspecs.store
import agent_hookspecs.tool_interop
from agent_hookspecs import errors, events, messages
from agent_hookspecs.store import encoding, errors as store_errors, rules, values
from agent_hookspecs.store.tables import database
from agent_hookspecs.tool_interop import formats

AUTHORING = [
    "AccumulatorExtensionMixin",
    "AccumulatorStreamingMixin",
    "EFFORTS",
    "Partial",
    "Rendering",
    "ToolContext",
    "accumulate_reasoning",
    "accumulate_tool_calls",
    "attachment",
    "bare_messages",
    "expand_attachments",
    "facts_about",
    "finish_tool_calls",
    "first_choice",
    "knob_elements",
    "knob_schema",
    "load_facts",
    "model_element",
    "plain",
    "refers_to_files",
    "render_history",
    "requested_knobs",
    "retained_count",
    "selected_model",
    "show_patch",
    "take_effort",
    "take_knob",
    "taken_call_ids",
    "tool",
    "tool_call_id",
    "tools",
    "unique_call_id",
]
PUBLIC = [
    "API_VERSION",
    "Action",
    "ActionResult",
    "AgentError",
    "AnswerTooLargeError",
    "ApprovalRequiredEvent",
    "AuthenticationError",
    "BindingError",
    "ChildEvent",
    "CollisionError",
    "Config",
    "ConfigError",
    "ConnectionFailedError",
    "ContentBlockedError",
    "Context",
    "ContextLengthError",
    "ContractError",
    "CoreMessage",
    "DescriptorError",
    "DoneEvent",
    "Effect",
    "ErrorEvent",
    "Event",
    "FeaturePlugin",
    "FinalEvent",
    "Finish",
    "Framing",
    "GatingError",
    "HookError",
    "HookResultError",
    "IncompatibleError",
    "InvalidRequestError",
    "Limit",
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
    "ToolError",
    "ToolPlugin",
    "ToolResult",
    "ToolResultEvent",
    "ToolRetry",
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
    "redact",
]
TOOL_INTEROP = [
    "CallView",
    "DEFAULT_TOOL_INTEROP_REGISTRY",
    "GENERIC_FUNCTION",
    "JsonObject",
    "OPENAI_CHAT",
    "OPENAI_CHAT_CUSTOM",
    "OPENAI_CHAT_FUNCTION",
    "OPENAI_RESPONSES",
    "OPENAI_RESPONSES_CUSTOM",
    "OPENAI_RESPONSES_FUNCTION",
    "OpenAIResponsesFunctionFormat",
    "ResultView",
    "SchemaDialect",
    "SchemaView",
    "ToolCallAccessor",
    "ToolCallAdapter",
    "ToolDescriptor",
    "ToolFormat",
    "ToolInteropContribution",
    "ToolInteropRegistry",
    "ToolInteropTarget",
    "ToolResultAccessor",
    "ToolResultAdapter",
    "ToolSchemaAccessor",
    "ToolSchemaAdapter",
    "Warn",
    "WireNames",
    "adapt_schema",
    "compact_json",
    "content_part",
    "get_registry_from_context",
    "get_schema_target_formats_from_context",
    "parse_tool_arguments",
]

#: For those who write a store, and nobody else.
STORE = [
    "Change",
    "Checkpoint",
    "Connection",
    "ContentNotStoredError",
    "Cursor",
    "Database",
    "DecisionError",
    "FINAL_STATES",
    "FoundMessage",
    "NativeChange",
    "NotStoredError",
    "Note",
    "NoteChangedError",
    "Owner",
    "Question",
    "Receipt",
    "RunCancelledError",
    "RunState",
    "SCHEMA_VERSION",
    "SessionLease",
    "SessionLockedError",
    "SessionStore",
    "SessionSummary",
    "StoreBusyError",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreOptions",
    "StoreUnavailableError",
    "StoreVersionError",
    "StoredEvent",
    "StoredHistory",
    "StoredItems",
    "StoredRun",
    "TableStore",
    "WordIndex",
    "check_amount",
    "check_change",
    "check_content",
    "check_decision",
    "check_free",
    "check_name",
    "check_range",
    "check_version",
    "clean_text",
    "content_digest",
    "current_owner",
    "decode_item",
    "decode_items",
    "encode_item",
    "expiry_time",
    "lost_lease_error",
    "make_excerpt",
    "make_title",
    "migrations",
    "new_id",
    "new_lease",
    "pick_match",
    "query_words",
    "search_words",
    "searchable_words",
    "without_content",
]
PROTECTION = ["ProtectedPaths"]
BATCH = [
    "BatchEndpoint",
    "BatchEngine",
    "BatchFiles",
    "BatchLimits",
    "BatchReply",
    "BatchWorker",
    "BatchWorkers",
    "SubmittedBatch",
]


def test_the_public_names_are_these() -> None:
    assert agent_hookspecs.__all__ == PUBLIC
    assert agent_hookspecs.authoring.__all__ == AUTHORING
    assert agent_hookspecs.tool_interop.__all__ == TOOL_INTEROP
    assert agent_hookspecs.store.__all__ == STORE
    assert agent_hookspecs.protection.__all__ == PROTECTION
    assert agent_hookspecs.batch.__all__ == BATCH


def test_an_author_has_no_more_than_150_names_to_know() -> None:
    # Those of stores and engines, and of tools that open files, are beside them: others never
    # meet them.
    assert len(PUBLIC) + len(AUTHORING) + len(TOOL_INTEROP) <= 150


ROOMS = {
    agent_hookspecs: PUBLIC,
    agent_hookspecs.authoring: AUTHORING,
    agent_hookspecs.tool_interop: TOOL_INTEROP,
    agent_hookspecs.store: STORE,
}

ROOT = Path(__file__).resolve().parents[2]
#: Families that are offered as wholes: what raises, yields or reads one of them need not name it.
WHOLE = {
    *errors.__all__,
    *store_errors.__all__,
    *values.__all__,
    *database.__all__,
    *events.__all__,
    *messages.__all__,
    *(name for name in formats.__all__ if name.startswith("Tool")),
    "hookimpl",
    "__version__",
    # The twin of `accumulate_reasoning`, for extensions that merge calls.
    "accumulate_tool_calls",
}
#: The rules that a store without tables has to follow too; ours follow them in `TableStore`.
FOR_OTHER_STORES = {*encoding.__all__, *rules.__all__}
#: What applications import, not plugins; the docs have an example.
FOR_APPLICATIONS = {"ToolContext", "attachment"}


def imports_of(file: Path) -> Iterator[tuple[str, str]]:
    """The names that a module imports from the contract, each with where it takes it from."""
    # The template's placeholders stand where names do, and its conditions on lines of their own.
    text = re.sub(r"^{%.*?%}$", "", file.read_text("utf-8"), flags=re.MULTILINE)
    if "cookiecutter" in text:
        text = re.sub(r"{{.*?}}", "x", re.sub(r"{%-?.*?-?%}", "", text, flags=re.DOTALL))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agent_hookspecs"):
            for alias in node.names:
                yield str(node.module), alias.name


def users() -> list[Path]:
    found = [*ROOT.glob("agent_host/**/*.py"), *ROOT.glob("template-python-provider/**/*.py")]
    found += ROOT.glob("plugins/*/src/**/*.py")
    # The kit proves itself with plugins of its own.
    return [*found, *ROOT.glob("plugins/testing/tests/**/*.py")]


def test_every_public_name_is_used() -> None:
    used = {name for file in users() for _, name in imports_of(file)}
    assert {
        *PUBLIC,
        *AUTHORING,
        *TOOL_INTEROP,
        *STORE,
        *PROTECTION,
        *BATCH,
    } - used - WHOLE - FOR_APPLICATIONS - FOR_OTHER_STORES == set()


def test_plugins_and_the_template_import_public_names_alone() -> None:
    public = {*PUBLIC, *AUTHORING, *TOOL_INTEROP, *STORE, *PROTECTION, *BATCH}
    files = [
        *ROOT.glob("template-python-provider/**/src/**/*.py"),
        # The kit looks into plugins, as the host does.
        *(file for file in ROOT.glob("plugins/*/src/**/*.py") if "testing" not in file.parts),
    ]
    taken = {
        (file.parent.name, where, name)
        for file in files
        for where, name in imports_of(file)
        if name not in public
    }
    assert taken == set()


def test_every_public_name_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "names.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \| \S.*\|$", page, re.MULTILINE)
    rooms = [PUBLIC, AUTHORING, TOOL_INTEROP, STORE, PROTECTION, BATCH]
    assert sorted(listed) == sorted(name for room in rooms for name in room)


def test_dir_shows_the_public_names() -> None:
    assert dir(agent_hookspecs) == PUBLIC


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'agent_hookspecs' has no attribute 'nothing'"):
        _ = agent_hookspecs.nothing


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_type_checkers_see_the_names_that_are_loaded_lazily(room: ModuleType) -> None:
    assert room.__file__ is not None
    tree = ast.parse(Path(room.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen: list[str] = []
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        assert [alias.name for alias in node.names] == ["*"]
        module = import_module(node.module)
        for name in module.__all__:
            assert getattr(room, name) is getattr(module, name)
        seen += module.__all__
    assert sorted(seen) == ROOMS[room]


def test_asking_for_a_name_loads_nothing_beyond_the_module_that_has_it() -> None:
    code = "import sys; from agent_hookspecs import CoreMessage; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in shown.stdout.split() if "hookspecs." in name]
    assert loaded == ["agent_hookspecs._version", "agent_hookspecs.messages"]


def test_asking_for_a_module_loads_no_other() -> None:
    code = "import sys; from agent_hookspecs import messages; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in shown.stdout.split() if "hookspecs." in name]
    assert loaded == ["agent_hookspecs.messages"]


def test_importing_the_package_loads_none_of_its_modules() -> None:
    code = "import sys, agent_hookspecs; print(*(m for m in sys.modules if 'hookspecs.' in m))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == []
