"""Writes the reference pages that are made from the code, and the tables in those that are not.

Run it after changing a specification or a descriptor: ``python docs/generate.py``. It also writes
the JSON Schema of descriptors that the contract's package has for editors. A test compares
the pages with what it would write. Of the bundled packages it reads the descriptors, and the tags
that their code names.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import agent_hookspecs
from agent_hookspecs import (
    authoring,
    batch,
    errors,
    events,
    messages,
    protection,
    store,
    tool_interop,
)
from agent_hookspecs.authoring.knobs import KNOBS
from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_hookspecs.markers import RESULT_PARTS, Combining, PartKind
from agent_hookspecs.specs import SPECS, hooks_of
from agent_host.plugins.descriptor import descriptor_schema

__all__ = ["PAGES", "render_descriptor", "render_events", "render_hooks", "render_names"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SCHEMA_FILE = ROOT / "hookspecs" / "src" / "agent_hookspecs" / "agent_plugin.schema.json"
#: The one table of how runs end; the page has it in words, and a test runs it.
ENDINGS_FILE = ROOT / "tests" / "together" / "endings.py"
#: The conformance kit, which need not be installed where pages are compared.
KIT = ROOT / "plugins" / "testing" / "src" / "agent_host_testing"
#: What authors need of its recordings, by module.
CORPUS = {
    "corpus.protocols": ("RecordedProtocol",),
    "corpus.entries": ("Turn", "Entry", "Block", "Answer", "text_block"),
    "corpus.recording": ("Recording", "Expected", "ExpectedCall"),
}
_READING = runpy.run_path(str(HERE / "definitions.py"))
comments_in, definition_of = _READING["comments_in"], _READING["definition_of"]
first_sentence, flat, literal_in = (_READING[n] for n in ("first_sentence", "flat", "literal_in"))
NOTE = "<!-- Written by docs/generate.py from the code; change it there. -->"
#: What the parts of a result are, in words.
KIND_WORDS: dict[PartKind, str] = {
    "dict": "a dict",
    "list": "a list",
    "dicts": "a list of dicts",
    "text": "a string",
    "texts": "a list of strings",
    "contents": "a list of strings and parts",
    "flag": "True, False or None",
}
PART = re.compile(r"(?<=<!-- part: )([a-z-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

Entry = dict[str, Any]


def render_hooks() -> str:
    """Every hook of every role with its exact signature and its docstring."""
    lines = ["# Hooks", "", NOTE, ""]
    lines += [
        "Every hook a plugin may implement, by role. A public method named like a hook of its role",
        "is an implementation; it takes any of the arguments, by name, in any order. *Mode* says",
        "what becomes of the results of several implementations. *Returns* says what is checked of",
        "a result, for hooks that hand data on: another shape is an error that names the plugin.",
        "",
    ]
    lines += [f"- [{role}](#{role}): {', '.join(hooks_of(role))}" for role in SPECS]
    for role, spec in SPECS.items():
        lines += ["", f"## {role}", "", flat(inspect.getdoc(spec) or ""), ""]
        for hook in hooks_of(role).values():
            lines += [f"### {role}: {hook.name}", "", "```python", hook.signature, "```", ""]
            lines += _paragraphs(hook.doc, _result(hook.combining))
    return "\n".join(lines).rstrip() + "\n"


def _result(combining: Combining) -> str:
    """The declared shape of a result in words; nothing if nothing is declared."""
    parts = [_part(name) for name in combining.result]
    if not parts:
        return ""
    shape = parts[0] if len(parts) == 1 else f"a tuple of {', '.join(parts[:-1])} and {parts[-1]}"
    if combining.mode == "fold":
        return f"{shape}; or None, which leaves all as it was."
    is_flag = RESULT_PARTS[combining.result[0]] == "flag"
    return f"{shape}; or None." if combining.optional and not is_flag else f"{shape}."


def _part(name: str) -> str:
    kind = KIND_WORDS[RESULT_PARTS[name]]
    return kind if RESULT_PARTS[name] == "flag" else f"`{name}` ({kind})"


def _paragraphs(doc: str, result: str) -> list[str]:
    lines: list[str] = []
    facts: list[str] = []
    for paragraph in doc.split("\n\n"):
        found = [f"- **{key}:** {flat(text)}" for key, text in _facts(paragraph)]
        facts += found
        lines += [] if found else [flat(paragraph), ""]
    facts += [f"- **Returns:** {result}"] if result else []
    return [*lines, *facts, ""]


def _facts(paragraph: str) -> list[tuple[str, str]]:
    """The labelled lines of a hook's docstring, continuation lines joined."""
    facts: list[tuple[str, str]] = []
    for line in paragraph.splitlines():
        key, found, text = line.partition(": ")
        if found and key in ("Fires", "May change", "On exception", "Mode"):
            facts.append((key, text.strip()))
        elif facts:
            facts[-1] = (facts[-1][0], f"{facts[-1][1]} {line.strip()}")
    return facts


def render_descriptor() -> str:
    """The keys of a descriptor, from its JSON Schema."""
    schema = descriptor_schema()
    entry = schema["properties"]["entries"]["items"]["oneOf"][1]
    lines = ["# The descriptor", "", NOTE, ""]
    lines += [
        f"`{DESCRIPTOR_NAME}` lies inside the package as package data. The host reads it without",
        "importing anything, and believes it: what it says statically is not asked of the class.",
        "[Writing a plugin](plugins.md) shows it at work, and",
        "[`plugins describe`](cli.md#plugins-describe) writes what it can take from the classes.",
        "",
        "## The file",
        "",
        *_table(schema),
        "",
        "## An entry",
        "",
        "An entry is an object with these keys, or in short form just the class as a string; then",
        "the class is imported whenever a request's stack is resolved.",
        "",
        *_table(entry),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required", ())
    rows = ["| key | value | meaning |", "|---|---|---|"]
    for key, value in schema["properties"].items():
        if key == "$schema":
            continue
        mark = " (required)" if key in required else ""
        rows.append(f"| `{key}`{mark} | {_kind(value)} | {value.get('description', '')} |")
    return rows


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema["type"] == "array" and "oneOf" not in schema["items"]:
        return f"list of {_kind(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object: name to {_kind(schema['additionalProperties'])}"
    kind: str = schema["type"]
    return {"array": "list of entries", "integer": "whole number"}.get(kind, kind)


def render_events() -> str:
    """The events of a run."""
    lines = ["# Events", "", NOTE, ""]
    lines += [
        "A run is a sequence of plain dicts told apart by `type`. Exactly one `done` or `error`",
        "ends it. All values can be written as JSON but one: `session` of `final` is the session",
        "itself, ready for the next turn; its `to_dict()` can be written.",
        "",
        "| type | keys | meaning |",
        "|---|---|---|",
    ]
    for kind in get_args(events.Event):
        hints = get_type_hints(kind)
        keys = ", ".join(f"`{key}`" for key in hints if key != "type")
        (name,) = get_args(hints["type"])
        lines.append(f"| `{name}` | {keys} | {flat(inspect.getdoc(kind) or '')} |")
    return "\n".join(lines).rstrip() + "\n"


# Of the bundled packages: what their descriptors say, and which tags their code names.

TAG = re.compile(r"supports_[a-z_]+|(?:provider|wire|reasoning|quirk|repair|accepts):[\w./-]+")
#: What a model may be able to do; gates are drawn as for one that can do it all.
ABILITIES = ("tools", "reasoning", "structured_output", "prompt_caching")
#: A provider whose wire is chosen by a setting, and the tag of each choice.
CHOICES = {"openai": {"responses": "wire:openai-responses", "chat": "wire:openai-chat"}}
#: Settings that every provider knows or may know; they are told once.
COMMON = ("model", "base_url", "api_key", "attachments_root", "extra_body", "extra_headers")

FAMILIES = ("provider", "quirk", "repair", "accepts")
#: Every tag, or family of tags, with its meaning and who gives it.
TAGS = {
    "provider:NAME": ("which provider it is", "every provider, its own"),
    "wire:openai-chat": (
        "requests and chunks are those of OpenAI's Chat Completions",
        "`openai` with `api: chat`, `openrouter`, and all of `agent-host-openai-compatible`",
    ),
    "wire:openai-responses": ("… of OpenAI's Responses", "`openai`"),
    "wire:anthropic.messages": ("… of Anthropic's Messages", "`anthropic`"),
    "wire:google.generate_content": ("… of Gemini's generateContent", "`google`"),
    "wire:cohere.chat": ("… of Cohere's v2 Chat API", "`cohere`"),
    "wire:ollama.chat": ("… of Ollama's chat", "`ollama`"),
    "supports_streaming": ("the provider can stream", "every provider"),
    "supports_tools": ("the model can call tools", "providers, by model"),
    "supports_custom_tools": (
        "the model takes freeform tools, which then stay freeform",
        "`openai`, by model",
    ),
    "supports_tool_search": (
        "the provider searches tools itself: it takes schemas that wait until they are found, as "
        "[`deferred_tools`](contexts.md) names them",
        "`anthropic`, `openai` with `api: responses`, by model",
    ),
    "supports_reasoning": (
        "the model can think; `supports_thinking` is another name of this tag",
        "providers, by model",
    ),
    "supports_structured_output": (
        "the model can be held to a JSON Schema",
        "providers, by model",
    ),
    "supports_structured_output_with_tools": (
        "… and may call tools in the same request",
        "`anthropic`, `google`, `openai` and servers of its format, by model",
    ),
    "supports_prompt_caching": (
        "parts of the prompt can be marked for the provider's cache",
        "`anthropic`",
    ),
    "supports_batches": (
        "the provider takes [many requests at once](batch.md#batches-of-a-provider), for less",
        "`anthropic`, `google`, `openai`",
    ),
    "supports_images": (
        "the model sees pictures: PNG, JPEG, GIF and WebP",
        "providers, by model",
    ),
    "supports_documents": ("the model reads PDF files", "providers, by model"),
    "supports_audio": (
        "the model hears: WAV and MP3",
        "`google`, `openai` and servers of its format, by model",
    ),
    "supports_video": ("the model watches: MP4 and WebM", "`google`, by model"),
    "accepts:NAME": (
        "the model takes files of this media type, too, such as `accepts:image/heic`",
        "`google`; `add_tags`",
    ),
    "supports_image_urls": ("the provider fetches pictures from the web", "providers"),
    "supports_file_urls": (
        "the provider fetches other files from the web",
        "`anthropic`, `google`, `openai` with `api: responses`, `openrouter`",
    ),
    "reasoning:own": ("reasoning is asked for in a way of its own", "`openrouter`"),
    "quirk:NAME": (
        "how a server strays from the OpenAI chat format: "
        "[the list](../plugins/openai-compatible/README.md#quirks)",
        "rows of `agent-host-openai-compatible`; `add_tags`",
    ),
    "repair:NAME": (
        "a [repair](../plugins/repairs/README.md) is wanted",
        "`repairs`, for its setting of that name; `add_tags`",
    ),
}


@cache
def bundled() -> dict[str, list[Entry]]:
    """The entries of every package below ``plugins/`` that has a descriptor, by folder."""
    files = sorted(ROOT.glob(f"plugins/*/src/*/{DESCRIPTOR_NAME}"))
    return {file.parents[2].name: json.loads(file.read_text("utf-8"))["entries"] for file in files}


def _entries(role: str) -> Iterator[tuple[str, Entry]]:
    for package, entries in bundled().items():
        yield from ((package, entry) for entry in entries if entry["role"] == role)


def providers() -> list[tuple[str, Entry]]:
    """Every provider that asks a model, and its package."""
    return [(package, entry) for package, entry in _entries("provider") if package != "echo"]


def server_table() -> list[str]:
    rows = ["| provider | models of | address | key | package |", "|---|---|---|---|---|"]
    for package, entry in providers():
        rows.append(
            f"| `{entry['name']}` | {entry.get('label', '')} | {_address(entry)} | {_key(entry)} "
            f"| `agent-host-{package}` |"
        )
    return rows


def _address(entry: Entry) -> str:
    known = entry.get("config_schema", {}).get("base_url", {}).get("default")
    address = known or entry.get("options", {}).get("base_url")
    if address:
        return f"`{address}`"
    return "to be set" if entry.get("requires_base_url") else "the vendor's"


def _key(entry: Entry) -> str:
    variable = f"`{entry['key_variable']}`" if entry.get("key_variable") else ""
    if entry.get("requires_api_key"):
        return variable
    return f"{variable} (optional)" if variable else "optional"


def settings_table() -> list[str]:
    rows = ["| provider | settings of its own | of |", "|---|---|---|"]
    for package, entry in providers():
        if entry.get("options"):
            continue
        for owner in (entry, *(each for _, each in _extensions(entry, package))):
            keys = [
                f"`{key}`"
                for key in owner.get("config_schema", {})
                if key not in KNOBS and key not in COMMON
            ]
            if keys:
                part = "the provider" if owner is entry else f"`{owner['name']}`"
                rows.append(f"| `{entry['name']}` | {', '.join(keys)} | {part} |")
    return rows


def _extensions(entry: Entry, package: str, wire: str = "") -> list[tuple[str, Entry]]:
    """The extensions that take part with a model that can do everything.

    Of a provider with a choice of wires, and none named, those of its own package.
    """
    tags = {*entry.get("provides_tags", ()), *(f"supports_{each}" for each in ABILITIES)}
    chosen = {wire} if wire else {*CHOICES.get(entry["name"], {}).values()}
    own = entry["name"] in CHOICES and not wire
    return [
        (home, each)
        for home, each in _entries("extension")
        if {*each.get("required_tags", ())} <= tags | chosen
        and not {*each.get("forbidden_tags", ())} & tags
        and (home == package or not own)
    ]


def knob_table() -> list[str]:
    columns: dict[str, dict[str, str]] = {}
    for package, entry in providers():
        if entry.get("options"):
            continue
        for choice, wire in CHOICES.get(entry["name"], {"": ""}).items():
            title = f"`{entry['name']}`" + (f", `api: {choice}`" if choice else "")
            columns[title] = _takers(entry, package, wire)
    rows = [f"| knob | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for knob in KNOBS:
        cells = (taken.get(knob, "–") for taken in columns.values())
        rows.append(f"| `{knob}` | {' | '.join(cells)} |")
    return rows


def _takers(entry: Entry, package: str, wire: str) -> dict[str, str]:
    takers = dict.fromkeys(entry.get("config_schema", {}), "provider")
    for _, extension in _extensions(entry, package, wire):
        takers |= dict.fromkeys(extension.get("config_schema", {}), f"`{extension['name']}`")
    return takers


def knob_exceptions() -> list[str]:
    rows = ["| provider | knob | sent as |", "|---|---|---|"]
    for _, entry in providers():
        for knob, wire in entry.get("options", {}).get("parameters", {}).items():
            sent = f"`{wire}`" if wire else "not at all; a warning says so"
            rows.append(f"| `{entry['name']}` | `{knob}` | {sent} |")
    return rows


def tag_table() -> list[str]:
    rows = ["| tag | meaning | given by | lets in | keeps out |", "|---|---|---|---|---|"]
    for tag, (meaning, givers) in TAGS.items():
        gates = (_gated("required_tags", tag), _gated("forbidden_tags", tag))
        rows.append(f"| `{tag}` | {meaning} | {givers} | {' | '.join(gates)} |")
    return rows


def _gated(key: str, tag: str) -> str:
    entries = (entry for entries in bundled().values() for entry in entries)
    found = [
        f"`{entry['name']}`"
        for entry in entries
        if tag in {family_of(each) for each in entry.get(key, ())}
    ]
    return ", ".join(found)


def family_of(tag: str) -> str:
    """The name under which a tag stands in the table."""
    family = tag.partition(":")[0]
    tag = "supports_reasoning" if tag == "supports_thinking" else tag
    return f"{family}:NAME" if ":" in tag and family in FAMILIES else tag


def named_tags() -> set[str]:
    """Every tag in descriptors and code of the bundled packages, as the table calls it."""
    found = {
        tag
        for entries in bundled().values()
        for entry in entries
        for key in ("provides_tags", "required_tags", "forbidden_tags")
        for tag in entry.get(key, ())
    }
    for package in bundled():
        for file in (ROOT / "plugins" / package / "src").rglob("*.py"):
            nodes = ast.walk(ast.parse(file.read_text("utf-8")))
            texts = (node.value for node in nodes if isinstance(node, ast.Constant))
            found |= {text for text in texts if isinstance(text, str) and TAG.fullmatch(text)}
    return {family_of(tag) for tag in found}


def error_tree() -> list[str]:
    """The tree as the module of errors draws it."""
    paragraphs = (inspect.getdoc(errors) or "").split("\n\n")
    (tree,) = (each for each in paragraphs if each.startswith("AgentError"))
    return ["```text", *tree.splitlines(), "```"]


def endings_table(part: str) -> list[str]:
    """The ways to end of one part: what is seen, what a program gets, and the exit code."""
    rows = [
        f"| {ending.name} | {_shown(ending.out)} | {_shown(ending.err)} | {_gets(ending)} "
        f"| {ending.code} |"
        for ending in runpy.run_path(str(ENDINGS_FILE))["ENDINGS"]
        if ending.part == part
    ]
    head = "| what happens | standard output | standard error | a program gets | exit code |"
    return [head, "|---|---|---|---|---|", *rows]


def _shown(text: str) -> str:
    return "<br>".join(f"`{line}`" for line in text.splitlines()) or "–"


def _gets(ending: Any) -> str:
    if ending.gets == "–":
        return "–"
    if ending.raises:
        return f"`{ending.gets}`"
    kind = "state" if ending.part == "people" else "finish"
    return f'{kind} `"{ending.gets}"`'


def render_names() -> str:
    """Every public name of the contract with the first sentence that its module says of it."""
    lines = ["# Names", "", NOTE, ""]
    lines += [
        "Every name that a plugin may import, by room. What is not listed here is the host's or a",
        "module's own and may change at any time.",
    ]
    for room in (agent_hookspecs, authoring, tool_interop, store, protection, batch):
        about = flat((inspect.getdoc(room) or "").split("\n\n")[0])
        lines += ["", f"## {room.__name__}", "", about, "", "| name | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {_sentence(room, name)} |" for name in room.__all__]
    return "\n".join(lines) + "\n"


def render_shapes() -> str:
    """What is in the dicts that cross the contract, with types."""
    lines = ["# Shapes", "", NOTE, "", "What is in the dicts that hooks take and return."]
    module = Path(str(messages.__file__))
    lines += [line for name in messages.__all__ for line in ("", *definition_of(name, module))]
    return "\n".join(lines).replace("\n### ", "\n## ") + "\n"


def render_kit_names() -> str:
    """Every public name of the conformance kit, with its fields and signatures."""
    lines = ["# Names of the kit", "", NOTE, ""]
    lines += [
        "Everything that tests import from `agent_host_testing`, and from its room `corpus` for",
        "[recordings](testing.md#recordings) of a format of their own. What is not listed here may",
        "change at any time.",
    ]
    modules = literal_in(KIT / "__init__.py", "_MODULES")
    for room, parts in (("agent_host_testing", modules), ("agent_host_testing.corpus", CORPUS)):
        lines += ["", f"## {room}"]
        for module, names in parts.items():
            file = KIT / f"{module.replace('.', '/')}.py"
            public = [name for name in names if not name.startswith("_")]
            lines += [line for name in public for line in ("", *definition_of(name, file))]
    return "\n".join(lines) + "\n"


def _sentence(room: ModuleType, name: str) -> str:
    value = getattr(room, name)
    # What a constant's class says of itself is not about the constant.
    has_own = inspect.isclass(value) or inspect.isroutine(value)
    doc = _comments(room).get(name) or (inspect.getdoc(value) if has_own else "") or ""
    assert doc, f"nothing is said of {name} in {room.__name__}"
    sentence: str = first_sentence(doc)
    return sentence.replace("|", "\\|").rstrip(".:")


@cache
def _comments(room: ModuleType) -> dict[str, str]:
    """What the comments above constants and types of a room say of them."""
    assert room.__file__ is not None
    found: dict[str, str] = {}
    folder = Path(room.__file__).parent
    # Its own modules last: what they say counts more than what deeper ones do.
    for module in sorted(folder.rglob("*.py"), key=lambda each: (-len(each.parts), each)):
        found |= comments_in(module.read_text("utf-8"))
    return found


#: The tables of pages that are written by hand, between ``<!-- part: … -->`` and ``<!-- end -->``.
PARTS: dict[str, dict[str, Callable[[], list[str]]]] = {
    "providers.md": {
        "servers": server_table,
        "settings": settings_table,
        "knobs": knob_table,
        "knob-exceptions": knob_exceptions,
    },
    "tags.md": {"tags": tag_table},
    "errors.md": {"tree": error_tree},
    "endings.md": {
        part: partial(endings_table, part)
        for part in ("answers", "limits", "tools", "refusals", "transport", "before", "people")
    },
}


def with_parts(name: str) -> str:
    """A page as it is, with its tables made anew."""

    def made(found: re.Match[str]) -> str:
        lines = "\n".join(PARTS[name][found[1]]())
        return f"{found[1]}{found[2]}\n{lines}\n\n"

    return PART.sub(made, (HERE / name).read_text("utf-8"))


PAGES: dict[str, Callable[[], str]] = {
    "hooks.md": render_hooks,
    "descriptor.md": render_descriptor,
    "events.md": render_events,
    "names.md": render_names,
    "shapes.md": render_shapes,
    "kit-names.md": render_kit_names,
    **{name: partial(with_parts, name) for name in PARTS},
}

if __name__ == "__main__":
    for name, render in PAGES.items():
        (HERE / name).write_text(render(), encoding="utf-8")
    SCHEMA_FILE.write_text(json.dumps(descriptor_schema(), indent=2) + "\n", encoding="utf-8")
