"""Where a plugin is usually mended, in one sentence for each row of the report.

What happened is for each check to say; this is for authors who do not know yet where to look.
"""

from __future__ import annotations

__all__ = ["ADVICE"]

ADVICE: dict[str, str] = {
    "addresses": "build the URL in build_request from base_url with its path, without the slashes "
    "at its end; keys belong into headers",
    "attachments": "read files with expand_attachments below attachments_root, and nothing else",
    "batches": "let the endpoint read what its API says of a batch, a line and a refusal, as the "
    "provider reads it of a request by itself",
    "broken streams": "stream_complete must give False until the protocol's own end was seen",
    "byte splits": "keep nothing between chunks but in state: the host decodes the bytes",
    "cancellation": "let what closes a stream pass: catch no BaseException around a wait",
    "chunks": "return what was given with your own part merged into it, from process_chunk",
    "claims": "give the tag in get_tags (or provides_tags), implement the hook, or take it out of "
    "the suite's 'expects'",
    "concurrency": "keep nothing of a request on the instance, its class or a module: what belongs "
    "to a request lives in state",
    "conversation": "to_native_messages makes one native of each message, in the order they have; "
    "build_request sends all of them",
    "descriptor": "write into agent_plugin.json what the class says; "
    "`agent-host plugins validate` shows both",
    "display": "put fragments of calls into the partial message's tool_calls, with index, id and "
    "the tool's own name, and leave the other keys alone",
    "ends": "map the API's words for the end in the class attribute finish_reasons",
    "engine": "take lines one by one, hand each to one worker, and give each result once; "
    "agent_hookspecs.batch says what else",
    "errors": "leave errors to the host's mapping, or know in map_error no less than it",
    "event loop": "do no I/O in hooks but the async ones; read files when the package is imported "
    "or not at all; a tool that is not async runs in a thread of its own",
    "exact arguments": "keep the arguments of a call as the text that came, and send that",
    "exact text": "pass text on as it is: no strip, no escape, no join with separators",
    "gating": "mend required_tags and forbidden_tags in class and descriptor",
    "hooks": "spell the hook as docs/hooks.md does, or begin the method's name with an underscore",
    "knobs": "take the knob with take_knob where the payload is made and send it, or leave it "
    "among the knobs so that the host warns",
    "linear cost": "append with Partial.append_text, and parse nothing before it is complete",
    "malformed calls": "pass the calls through registry.sanitize_tool_call in finalize",
    "mapping": "give back the list you were given, with your own keys added",
    "metadata": "take keys that are only for the accumulator out of the final in finalize",
    "mid-stream failures": "raise from process_chunk, or let map_error make, the typed error",
    "models": "get_models gives each model once with its id, and an empty list if there is none "
    "to be had",
    "native retention": "change no native of an earlier turn; what is made for one request "
    "belongs into the payload alone",
    "no work at import": "move what opens or imports things into the function that needs it",
    "parallel calls": "tell calls of one answer apart by index or id, and answer each by its id",
    "pictures": "map multipartContent in to_native_messages, with its bytes unchanged; what cannot "
    "be sent becomes a text in its place and a warning",
    "process": "log instead of printing, end in close what init began, and set nothing that the "
    "whole process shares",
    "provider switch": "make natives from core messages alone when they are not your own",
    "reasoning": "keep what is signed in the natives, on the part it was on",
    "request": "add to state['request'] and leave the keys of others",
    "results": "write each result beside its call's id, in the order of the calls",
    "retries": "give the error its kind: the host decides from that whether to ask again",
    "schemas": "declare each tool by one fixed schema with words for it and for each parameter",
    "secrets": "put the key into a header in build_request, and nowhere else",
    "settings": "read the setting from state['config'] where the request is built",
    "shared state": "return the state you were given, with your own keys added",
    "streamed = whole": "let one function make the final of an answer, streamed or whole",
    "streaming": "give the new text alone in partial_messages, and all of it in the final",
    "sync = async": "share the code of both: only the waiting may differ",
    "tags": "give provider:NAME and all of provides_tags in get_tags",
    "text": "take the text from the answer as it is, into one assistant message",
    "tool names": "encode names with WireNames in declarations and history, and decode through it",
    "tools": "convert declarations, calls and results with the registry of the request",
    "usage": "set metadata['usage'] once, from the last report of the answer",
    "wire shapes": "tolerate what the shape has: the name of the case says what it is",
}
