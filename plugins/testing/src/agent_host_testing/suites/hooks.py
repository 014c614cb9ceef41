"""Calling the hooks of an extension or a feature by hand, beside what other plugins have put there.

Owns the samples that stand for others' work, and the checks that both roles share.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY
from agent_host.plugins.implementation import Implementation, check_result
from agent_host.plugins.settings import merge_schemas
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.expecting import ClaimConformance
from agent_host_testing.violations import require

__all__ = ["OTHERS", "HookConformance", "core_messages", "native_messages", "require_keys"]

#: What some other plugin keeps beside ours; nobody else may touch it.
OTHERS: dict[str, Any] = {"another_plugin": {"kept": [1, 2]}}


#: The hooks by which a plugin takes part in requests; what it does without is not checked.
_CLAIMS = (
    "init",
    "initialize_request",
    "process_chunk",
    "finalize",
    "to_native_messages",
    "from_native_messages",
    "get_actions",
    "get_instructions",
    "get_context_parts",
)


class HookConformance(ClaimConformance):
    """A suite about a plugin that shares its state with others."""

    claims_are = "hooks"

    def claimed(self) -> list[str]:
        return [name for name in _CLAIMS if self.loaded().implementations.get(name)]

    def hook(self, name: str) -> Implementation:
        """The plugin's hook; the check is not for plugins that do without."""
        found = self.loaded().implementations.get(name)
        if not found:
            not_claimed(f"{self.plugin!r} has no {name}")
        return found[0]

    def result_of(self, hook: Implementation, *arguments: Any) -> Any:
        """What the host would go on with, if what the hook returns has the shape that it takes."""
        result, combining = check_result(hook, hook.call(*arguments)), hook.hook.combining
        if result is None and combining.mode == "fold":
            # It leaves what it was given as it was.
            return arguments[hook.hook.args.index(combining.over[0])]
        return result

    def state(self) -> dict[str, Any]:
        """The state of a request as the provider and other plugins leave it."""
        request = {
            "url": "http://127.0.0.1/",
            "headers": {"x-other": "1"},
            "payload": {"model": "m", **deepcopy(OTHERS)},
        }
        config = self.whole_config()
        return {"config": config, "request": request, "partial": None, **deepcopy(OTHERS)}

    def context(self) -> dict[str, Any]:
        """The context of a request, with the built-in interop registry."""
        interop = {"registry": DEFAULT_TOOL_INTEROP_REGISTRY, "schema_target_formats": []}
        return {"config": self.whole_config(), "tool_interop": interop}

    def whole_config(self) -> dict[str, Any]:
        """The settings with the defaults of the plugin's schema, as the host fills them in."""
        schema = merge_schemas([(self.plugin, self.loaded().entry.config_schema)])
        return schema.with_defaults(self.config())

    def begun(self) -> dict[str, Any]:
        """A state in which the plugin has done its ``init``, if it has one."""
        state = self.state()
        for hook in self.loaded().implementations.get("init", ()):
            state = self.result_of(hook, state["config"], state)
        return state

    @check("shared state", "docs/testing.md#what-others-keep")
    def test_init_keeps_the_state(self) -> None:
        """``init`` adds to the state that all plugins of a request share."""
        state = self.result_of(self.hook("init"), self.config(), self.state())
        require_keys({**OTHERS, "partial": None}, state, "the state")
        require(isinstance(state.get("config"), dict), "state['config'] is no dict any more")

    @check("request", "docs/testing.md#what-others-keep")
    def test_request_is_decorated(self) -> None:
        """``initialize_request`` adds to the request and leaves what others put there."""
        hook, state = self.hook("initialize_request"), self.begun()
        natives, state = self.result_of(hook, native_messages(), state, self.context())
        require_keys(
            {"x-other": "1"}, state["request"].get("headers"), "state['request']['headers']"
        )
        require_keys(OTHERS, state["request"].get("payload"), "state['request']['payload']")
        begins = natives[: len(native_messages())] == native_messages()
        require(begins, f"the history has become {natives}")

    @check("natives", "docs/testing.md#what-others-keep")
    def test_finalize_keeps_the_history(self) -> None:
        """``finalize`` changes the new messages at most; what was retained before stays."""
        final = {"role": "assistant", "content": "Done.", **deepcopy(OTHERS)}
        hook, history = self.hook("finalize"), [*native_messages(), final]
        finals, natives, _ = self.result_of(hook, [final], history, self.begun(), self.context())
        begins = natives[: len(native_messages())] == native_messages()
        require(begins, f"the history has become {natives}")
        require(finals, "the final message is gone")
        require_keys(OTHERS, finals[0], "the final message")


def native_messages() -> list[dict[str, Any]]:
    """A native history that others have marked."""
    return [
        {"role": "user", "content": "Hello", **deepcopy(OTHERS)},
        {"role": "assistant", "content": "Hi.", "_native_only": "kept"},
    ]


def core_messages() -> list[dict[str, Any]]:
    """The core messages that the natives stand for."""
    return [
        {"role": "user", "content": "Hello", "metadata": deepcopy(OTHERS)},
        {"role": "assistant", "content": "Hi.", "metadata": {"finish_reason": "stop"}},
    ]


def require_keys(before: dict[str, Any], after: Any, what: str) -> None:
    """Refuse it if a key is gone or has another value."""
    require(isinstance(after, dict), f"{what} is {after!r}")
    changed = [key for key, value in before.items() if key not in after or after[key] != value]
    require(not changed, f"{what} has lost or changed {', '.join(changed)}: {after}")
