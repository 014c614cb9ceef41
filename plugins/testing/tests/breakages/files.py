"""Breakages of the tools for files."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add, change_descriptor

__all__ = ["BREAKAGES"]

_SUITE = Suite("files", "test_files_conformance", "TestFiles")
#: The first line of a call.
_EXECUTE = "        run = _TOOLS.get(tool_name)\n"


def _breakage(name: str, sentence: str, red: tuple[str, ...], *changes: Change) -> Breakage:
    return Breakage("files", _SUITE, f"tool-{name}", sentence, red, changes)


BREAKAGES = (
    _breakage(
        "gates-by-unknown-models",
        "The tool's is_enabled fails when the models are not known.",
        ("test_gating_truth_table",),
        Change(
            "plugin.py",
            "    def init(self",
            "    def is_enabled(self, models: list[dict[str, str]]) -> bool:\n"
            '        return bool(models[0]["id"])\n\n'
            "    def init(self",
        ),
        change_descriptor('"role": "tool",', '"role": "tool", "dynamic": ["is_enabled"],'),
    ),
    _breakage(
        "does-not-say-what-it-is-for",
        "A tool is declared without a description.",
        ("test_schemas",),
        add("declarations.py", 'SCHEMAS[0]["description"] = ""\n'),
    ),
    _breakage(
        "hides-an-effect",
        "Class and descriptor have no effect for a tool on offer.",
        ("test_effects",),
        Change("declarations.py", '    "apply_patch": "write",\n', ""),
        change_descriptor(
            '"write_file": "write",\n        "apply_patch": "write"', '"write_file": "write"'
        ),
    ),
    _breakage(
        "reads-another-key",
        "The tool looks for its argument under a name that is not in the schema.",
        ("test_samples_run",),
        Change("plugin.py", 'arguments.required("pattern")', 'arguments.required("query")'),
    ),
    _breakage(
        "previews-by-doing",
        "To say what a call would change, the tool makes the change.",
        ("test_previews_change_nothing",),
        Change(
            "plugin.py",
            "        preview = _PREVIEWS.get(tool_name)\n",
            "        self.execute_tool(tool_name, payload, state)\n"
            "        preview = _PREVIEWS.get(tool_name)\n",
        ),
    ),
    _breakage(
        "differs-when-awaited",
        "With an event loop around it, the tool says something else.",
        ("test_sync_equals_async",),
        Change(
            "plugin.py",
            _EXECUTE,
            "        import threading\n\n"
            "        if threading.current_thread() is not threading.main_thread():\n"
            '            return {"text": "Perhaps.", "display": {}}\n' + _EXECUTE,
        ),
    ),
    _breakage(
        "takes-anything",
        "Its schema is none, so that nothing is checked before a call runs, nor by the tool.",
        ("test_schemas", "test_invalid_payloads"),
        add(
            "declarations.py",
            'SCHEMAS[0]["parameters"]["properties"]["path"]["type"] = "words"\n',
        ),
        Change(
            "plugin.py",
            _EXECUTE,
            '        if tool_name == "read_file" and payload == {}:\n'
            '            return {"text": "Nothing.", "display": {}}\n' + _EXECUTE,
        ),
    ),
    _breakage(
        "answers-to-any-name",
        "A name that is not on offer is run all the same.",
        ("test_unknown_tools",),
        Change(
            "plugin.py",
            "        if run is None:\n",
            "        if run is None and tool_name:\n"
            '            return {"text": "Nothing.", "display": {}}\n'
            "        if run is None:\n",
        ),
    ),
    _breakage(
        "looks-for-keys",
        "The tool finds the provider's key in the frames of its callers.",
        ("test_no_secrets_of_others",),
        Change(
            "plugin.py",
            '        return {"workspace": _workspace(config.get("root")), "limits": limits}\n',
            "        import inspect\n\n"
            "        frames = [each.frame for each in inspect.stack()]\n"
            '        found = [str(frame.f_locals.get("config")) for frame in frames]\n'
            '        known = {"workspace": _workspace(config.get("root")), "limits": limits}\n'
            '        return {**known, "found": found}\n',
        ),
    ),
    _breakage(
        "goes-on-for-nobody",
        "A call goes on for ever once nobody waits for it.",
        ("test_cancelled_calls_end",),
        Change(
            "plugin.py",
            "    def execute_tool(self, tool_name: str, payload: Any, state: State) -> Result:\n",
            "    def execute_tool(\n"
            "        self, tool_name: str, payload: Any, state: State, context: Any\n"
            "    ) -> Result:\n"
            '        while context.get("cancelled", bool)():\n'
            "            time.sleep(0.05)\n",
        ),
    ),
    _breakage(
        "shares-its-state",
        "The state that was closed is given to the next stack.",
        ("test_close",),
        Change(
            "plugin.py",
            '        return {"workspace": _workspace(config.get("root")), "limits": limits}\n',
            '        made = {"workspace": _workspace(config.get("root")), "limits": limits}\n'
            '        return self.__dict__.setdefault("known", made)\n',
        ),
    ),
)
