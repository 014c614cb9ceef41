"""Breakages of the reference provider of Ollama's chat."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, own_error

__all__ = ["BREAKAGES"]

PACKAGE = "reference_ollama_chat"

BREAKAGES = (
    Breakage(
        PACKAGE,
        "ollama-keeps-the-last-call",
        "Of calls that come on several lines only the last is kept.",
        ("test_parallel_calls",),
        (
            Change(
                '        answer["tool_calls"] += message.get("tool_calls") or ()',
                '        answer["tool_calls"] = message.get("tool_calls") or answer["tool_calls"]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "ollama-sends-text-as-arguments",
        "Arguments that are no object go back as the text that they are.",
        ("test_malformed_calls",),
        (Change('    if isinstance(function.get("arguments"), dict):', "    if function:"),),
    ),
    Breakage(
        PACKAGE,
        "ollama-sends-the-hosts-notes",
        "What the host keeps beside a message is sent with it.",
        ("test_conversation_reaches_the_wire",),
        (Change('if k != "_metadata"} for each in history', "} for each in history"),),
    ),
    Breakage(
        PACKAGE,
        "ollama-makes-up-models",
        "The list of models is made up, so that it is there when the server is not.",
        ("test_models_are_empty_on_failure",),
        (
            Change(
                "    def models_request(self, config: Config) -> RequestSpec:\n"
                '        return {"method": "GET", "url": f"{_base(config)}/tags", '
                '"headers": _headers(config)}\n\n'
                "    def parse_models(self, body: Any) -> list[ModelInfo]:\n"
                '        return [{"id": model["model"]} for model in body["models"]]\n',
                "    def get_models(self, config: Config) -> list[ModelInfo]:\n"
                '        name = config["model"]\n'
                '        return [{"id": name}, {"id": f"{name}-other"}]\n',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "ollama-shows-clean-lines",
        "Separators of lines are made line ends in what is shown, though not in what is kept.",
        ("test_streamed_text",),
        (
            Change(
                '        return [{"role": "assistant", "content": text}]',
                '        text = text.replace("\\u2028", "\\n")\n'
                '        return [{"role": "assistant", "content": text}]',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "ollama-loses-models-not-found",
        "A model that is not there is told as a request that was wrong.",
        ("test_errors_are_typed[model_not_found]",),
        (own_error("status == 404", "InvalidRequestError"),),
    ),
    Breakage(
        PACKAGE,
        "ollama-copies-growing-thoughts",
        "The thought so far is copied at every fragment, which costs its square.",
        ("test_linear_cost[reasoning]",),
        (
            Change(
                '            answer["thinking"].append_text("text", thought)',
                '            known = answer["thinking"].get("text", "")\n'
                '            answer["thinking"]["text"] = known + thought',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "ollama-gives-up-for-good",
        "Once a server has refused something, the instance sends it nothing more.",
        ("test_refusals_are_retried",),
        (
            Change(
                "    def stream_complete(self",
                "    def map_error(self, status: int) -> None:\n"
                '        self.__dict__["refused"] = status\n\n'
                "    def stream_complete(self",
            ),
            Change(
                '        config = state["config"]\n        state["request"] = {',
                '        config = state["config"]\n'
                '        if "refused" in self.__dict__:\n'
                '            raise ServerError("the server has refused something before")\n'
                '        state["request"] = {',
            ),
        ),
    ),
    Breakage(
        PACKAGE,
        "ollama-asks-at-import",
        "Importing the package opens a file.",
        ("test_import_does_no_work",),
        (
            Change(
                'NAME = "reference_ollama_chat"\n',
                'NAME = "reference_ollama_chat"\n'
                'open(__file__.replace("plugin.py", "agent_plugin.json")).close()\n',
            ),
        ),
    ),
)
