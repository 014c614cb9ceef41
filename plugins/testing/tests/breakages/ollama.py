"""Breakages of the provider of Ollama's chat."""

from __future__ import annotations

from breakages.breakage import Breakage, Change, Suite, add

__all__ = ["BREAKAGES"]

_SUITE = Suite("ollama", "test_ollama_conformance", "TestOllama")


def _breakage(
    name: str, kind: str, sentence: str, red: tuple[str, ...], *changes: Change
) -> Breakage:
    return Breakage("ollama", _SUITE, name, kind, sentence, red, changes)


BREAKAGES = (
    _breakage(
        "ollama-keeps-the-last-call",
        "calls",
        "Of calls that come on several lines only the last is kept.",
        ("test_parallel_calls",),
        Change("answers.py", "            self._calls += [", "            self._calls = ["),
    ),
    _breakage(
        "ollama-sends-text-as-arguments",
        "calls",
        "Arguments that are no object go back as the text that they are.",
        ("test_malformed_calls",),
        Change(
            "provider.py",
            '[sanitize(call) for call in final["tool_calls"]]',
            "[*final['tool_calls']]",
        ),
    ),
    _breakage(
        "ollama-sends-the-hosts-notes",
        "exact bytes",
        "What the host keeps beside a message is sent with it.",
        ("test_conversation_reaches_the_wire",),
        Change(
            "requests.py",
            'notes = native.pop("_metadata", None)',
            'notes = native.get("_metadata")',
        ),
    ),
    _breakage(
        "ollama-makes-up-models",
        "models",
        "The list of models is made up, so that it is there when the server is not.",
        ("test_models_are_empty_on_failure",),
        add(
            "provider.py",
            "def _get_models(self: object, config: Config) -> list[ModelInfo]:\n"
            '    name = config.get("model") or "made-up"\n'
            '    return [{"id": name}, {"id": f"{name}-other"}]\n\n\n'
            "del OllamaProvider.models_request\n"
            "OllamaProvider.get_models = _get_models\n",
        ),
    ),
    _breakage(
        "ollama-shows-clean-lines",
        "exact text",
        "Separators of lines are made line ends in what is shown, though not in what is kept.",
        ("test_streamed_text",),
        Change(
            "provider.py",
            '        partial.append_text("content", text)\n',
            '        partial.append_text("content", text)\n'
            '        text = text.replace("\\u2028", "\\n")\n',
        ),
    ),
    _breakage(
        "ollama-loses-models-not-found",
        "errors",
        "A model that is not there is told as a request that was wrong.",
        ("test_errors_are_typed[model_not_found]",),
        Change(
            "errors.py",
            'ModelNotFoundError, "run {pull}"',
            'InvalidRequestError, "run {pull}"',
        ),
    ),
    _breakage(
        "ollama-copies-growing-thoughts",
        "cost",
        "The thought so far is copied at every fragment, which costs its square.",
        ("test_linear_cost[reasoning]",),
        Change(
            "answers.py",
            '            self._message.append_text("thinking", thinking)\n',
            '            known = str(self._message.get("thinking") or "")\n'
            '            self._message["thinking"] = known + thinking\n',
        ),
    ),
    _breakage(
        "ollama-gives-up-for-good",
        "shared instances",
        "Once a server has refused something, the instance sends it nothing more.",
        ("test_refusals_are_retried",),
        Change(
            "provider.py",
            "        return http_error(status, body)\n",
            '        self.__dict__["refused"] = status\n        return http_error(status, body)\n',
        ),
        Change(
            "provider.py",
            "        take_options(state)\n",
            '        if "refused" in self.__dict__:\n'
            '            raise ProtocolError("the server has refused something before")\n'
            "        take_options(state)\n",
        ),
    ),
    _breakage(
        "ollama-asks-at-import",
        "packages",
        "Importing the package opens a file.",
        ("test_import_does_no_work",),
        add("provider.py", 'open(__file__.replace("provider.py", "models.json")).close()\n'),
    ),
    _breakage(
        "ollama-overlooks-errors",
        "broken streams",
        "An error in the middle of a stream is taken for a line.",
        ("test_mid_stream_failure",),
        Change("answers.py", 'if chunk.get("error"):', 'if chunk.get("failure"):'),
    ),
    _breakage(
        "ollama-forgets-thinking",
        "reasoning",
        "Only the last piece of what was thought is kept.",
        ("test_reasoning_is_shown", "test_streamed_equals_whole[reasoning]"),
        Change(
            "answers.py",
            'self._message.append_text("thinking", thinking)',
            'self._message["thinking"] = thinking',
        ),
    ),
    _breakage(
        "ollama-writes-no-json",
        "calls",
        "Arguments are written as Python writes them.",
        ("test_tools_round_trip", "test_parallel_calls", "test_tool_names_are_made_legal"),
        Change(
            "calls.py",
            "given if isinstance(given, str) else compact_json(given) or str(given)",
            "str(given)",
        ),
    ),
    _breakage(
        "ollama-never-ends",
        "usage",
        "The last line is not known as the end.",
        ("test_ollama_answers.py::test_counts_and_durations_are_usage",),
        Change("answers.py", 'if chunk.get("done"):', 'if chunk.get("finished"):'),
    ),
    _breakage(
        "ollama-thinks-always",
        "knobs",
        "Who wants no thinking gets it.",
        ("test_effort_moves_the_request",),
        Change("reasoning.py", 'else effort != "none"', "else True"),
    ),
    _breakage(
        "ollama-gives-ids-twice",
        "calls",
        "Two calls may have the same id.",
        (
            "test_ollama_answers.py::"
            "test_ids_are_the_wires_or_made_up_and_unique_over_the_conversation",
        ),
        Change("provider.py", "taken_call_ids(native_messages, state, ids_in)", "()"),
    ),
    _breakage(
        "ollama-miscounts",
        "usage",
        "The prompt is counted as the answer.",
        ("test_usage_is_counted_once",),
        Change(
            "answers.py",
            'usage["input"] = raw["prompt_eval_count"]',
            'usage["output"] = raw["prompt_eval_count"]',
        ),
    ),
    _breakage(
        "ollama-shows-one-call",
        "display",
        "All calls are shown at the place of the first.",
        ("test_calls_are_shown",),
        Change("tools.py", "_fragment(call, known + n)", "_fragment(call, 0)"),
    ),
    _breakage(
        "ollama-shows-wire-names",
        "display",
        "Calls are shown by the names that they have on the wire.",
        ("test_calls_are_shown",),
        Change(
            "tools.py",
            '    return {"index": index, "id": call["id"], **call["function"]}\n',
            '    wire = {"name": WireNames().encode(call["function"]["name"])}\n'
            '    return {"index": index, "id": call["id"], **call["function"], **wire}\n',
        ),
    ),
)
