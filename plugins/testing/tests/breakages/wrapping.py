"""Mistakes made around a hook, whatever its code looks like: they outlive every rewriting of it.

The code that is added to a module puts another function in the place of the class's hook; that asks
the one before with ``ask()`` and does its mischief before or after.
"""

from __future__ import annotations

from textwrap import indent

from breakages.breakage import Change, add

__all__ = ["HELPERS", "around"]

#: What each hook may be given; the one before gets what it has parameters for.
_PARAMETERS = {
    "build_request": "native_messages, state, stream, context",
    "execute_action": "action_id, session, params, context, state",
    "execute_tool": "tool_name, payload, state, context",
    "finalize": "native_messages, state, context",
    "from_native_messages": "native_messages, state",
    "get_instructions": "config, context",
    "get_tags": "config, models",
    "get_tool_schemas": "state",
    "init": "config",
    "initialize_request": "native_messages, state, context",
    "map_error": "status, headers, body",
    "parse_models": "body",
    "preview_tool": "tool_name, payload, state",
    "process_chunk": "native_chunk, native_messages, state, event=None",
    "stream_complete": "state",
    "to_native_messages": "messages, state",
    "usage_so_far": "state",
}

_AROUND = """\
def _break_{hook}(known):
    import inspect

    names = inspect.signature(known).parameters

    def {hook}(self, {parameters}):
        given = dict(locals())

        def ask(**more):
            asked = {{**given, **more}}
            return known(**{{key: value for key, value in asked.items() if key in names}})

{lines}

    return {hook}


{owner}.{hook} = _break_{hook}({owner}.{hook})
"""

#: What the lines may use: settings in a body, and every text or list of a value.
HELPERS = '''\
def _drop(body, *keys):
    for holder in (body, body.get("generationConfig"), body.get("options")):
        for key in keys if isinstance(holder, dict) else ():
            holder.pop(key, None)


def _edit_texts(value, edit, key="", beside=()):
    """The value with every text of a message edited; tools and ids are left alone."""
    if isinstance(value, dict):
        kept = {"tools", "tool_calls", "functionCall", "input_schema", "data", "url"}
        return {
            name: each if name in kept else _edit_texts(each, edit, name, value)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_edit_texts(each, edit, key, beside) for each in value]
    return edit(value) if isinstance(value, str) and key in ("text", "content") else value


def _edit_calls(body, edit):
    """Edit the calls of each turn, a list of parts that are calls or hold one, in any format."""
    turns = [[]]
    for message in body.get("messages") or body.get("contents") or body.get("input") or ():
        if message.get("type") == "function_call":
            turns[-1].append(message)
        else:
            turns.append(list(message.get("tool_calls") or ()))
            for part in message.get("parts") or message.get("content") or ():
                if isinstance(part, dict) and (
                    part.get("type") == "tool_use" or "functionCall" in part
                ):
                    turns[-1].append(part)
    for turn in turns:
        edit([part.get("functionCall") or part.get("function") or part for part in turn], turn)


def _swap(one, two, *keys):
    for key in keys:
        if key in one and key in two:
            one[key], two[key] = two[key], one[key]


def _without_pictures(value):
    """The value without the parts that are pictures, in any of the formats."""
    kinds = ("image", "image_url", "input_image")
    if isinstance(value, dict):
        return {
            name: _without_pictures(each) for name, each in value.items() if name != "images"
        }
    if isinstance(value, list):
        return [
            _without_pictures(each)
            for each in value
            if not isinstance(each, dict)
            or not (each.get("type") in kinds or "inlineData" in each or "inline_data" in each)
        ]
    return value
'''


def around(file: str, owner: str, hook: str, lines: str) -> Change:
    """Lines that run in the place of a hook of the class ``owner``, and return what it should."""
    code = _AROUND.format(
        hook=hook, parameters=_PARAMETERS[hook], lines=indent(lines, " " * 8), owner=owner
    )
    return add(file, f"{HELPERS}\n\n{code}")
