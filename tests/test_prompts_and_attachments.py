"""Prompts and attachments that tools have for people, in programs and in conversations."""

from __future__ import annotations

import asyncio
import base64
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ToolError, ToolPlugin
from agent_hookspecs.tool_interop import content_part
from agent_host import AgentApplication
from agent_host.input import InputError

CONFIG = {"providers": {"main": {"provider": "echo"}}}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 16).decode()


class Desk(ToolPlugin):
    """Has two prompts, and texts at addresses that begin with its name."""

    name = "desk"

    def init(self, config: Any) -> Any:
        return {"keys": config["plugin_keys"]}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    def get_prompts(self) -> list[dict[str, Any]]:
        style = {"name": "style", "description": "How it sounds.", "required": True}
        return [
            {"name": "desk:letter", "description": "Write a letter.", "arguments": [style]},
            {"name": "desk:picture", "description": "Look at a picture."},
        ]

    def read_prompt(self, prompt_name: str, arguments: dict[str, str], context: Any) -> list[Any]:
        if prompt_name == "desk:picture":
            url = f"data:image/png;base64,{PIXEL}"
            return ["Look:", content_part("image", {"url": url}, {"media_type": "image/png"})]
        who = context["ask_person"]("To whom?") if arguments["style"] == "ask" else "Ada"
        return [f"Write a {arguments['style']} letter to {who}."]

    def read_attachment(self, address: str, context: Any) -> list[Any] | None:
        name, _, rest = address.partition(":")
        if name != "desk":
            return None
        if rest == "locked":
            raise ToolError("the drawer is locked")
        if rest == "lie":
            url = f"data:image/jpeg;base64,{PIXEL}"
            return [content_part("image", {"url": url}, {"media_type": "image/jpeg"})]
        data = base64.b64encode(b"blob of " + rest.encode()).decode()
        return [
            content_part("text", {"text": f"[{rest}]"}),
            content_part("file", {"url": f"data:text/plain;base64,{data}"}),
        ]

    def execute_tool(self, tool_name: str, payload: Any) -> str:
        return ""


def said(answer: Any) -> Any:
    return next(each for each in answer.session.messages if each["role"] == "user")


def test_prompts_of_tools_are_listed_with_their_arguments() -> None:
    with AgentApplication(CONFIG, tools=[Desk]) as app:
        letter, picture = app.list_prompts()
    assert (letter.name, letter.plugin, letter.description) == (
        *("desk:letter", "desk", "Write a letter."),
    )
    assert [(each.name, each.required) for each in letter.arguments] == [("style", True)]
    assert picture.arguments == ()


def test_what_a_prompt_gives_is_what_a_run_takes() -> None:
    with AgentApplication(CONFIG, tools=[Desk]) as app:
        parts = app.read_prompt("desk:letter", {"style": "kind"})
        assert said(app.run(parts))["content"] == "Write a kind letter to Ada."
        assert asyncio.run(app.aread_prompt("desk:letter", {"style": "kind"})) == parts


def test_a_prompt_may_ask_a_person() -> None:
    with AgentApplication(CONFIG, tools=[Desk]) as app:
        found = app.read_prompt("desk:letter", {"style": "ask"}, ask=lambda question: "Grace")
        assert found == ["Write a ask letter to Grace."]
        with pytest.raises(ToolError, match="nobody has answered"):
            app.read_prompt("desk:letter", {"style": "ask"})


def test_a_picture_of_a_prompt_is_a_part_of_the_message() -> None:
    with AgentApplication(CONFIG, tools=[Desk]) as app:
        text, picture = app.read_prompt("desk:picture")
    assert text == "Look:"
    assert isinstance(picture, dict)
    assert picture["type"] == "image"
    assert picture["content"]["url"].endswith(PIXEL)


@pytest.mark.parametrize(
    ("name", "arguments", "wrong", "hint"),
    [
        ("desk:poem", {}, "no prompt 'desk:poem'", "desk:letter, desk:picture"),
        ("desk:letter", {}, "needs style", "give style="),
        ("desk:letter", {"style": "a", "tone": "b"}, "no argument 'tone'", "it takes: style"),
        ("desk:picture", {"size": "1"}, "no argument 'size'", "it takes none"),
    ],
)
def test_a_prompt_that_cannot_be_had_says_why(
    name: str, arguments: dict[str, str], wrong: str, hint: str
) -> None:
    with AgentApplication(CONFIG, tools=[Desk]) as app:
        with pytest.raises(InputError, match=wrong) as raised:
            app.read_prompt(name, arguments)
        assert hint in raised.value.hint


def test_prompts_with_names_that_nobody_can_type_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd(Desk):
        def get_prompts(self) -> list[dict[str, Any]]:
            return [{"name": "two words"}]

    with (
        AgentApplication(CONFIG, tools=[Odd]) as app,
        caplog.at_level(logging.WARNING, logger="agent_host"),
    ):
        assert app.list_prompts() == []
        assert "prompts_left_out" in caplog.text


def test_what_stands_at_an_address_goes_with_the_prompt() -> None:
    with AgentApplication(CONFIG, tools=[Desk]) as app:
        parts = app.read_attachment("desk:notes")
        assert parts is not None
        assert asyncio.run(app.aread_attachment("desk:notes")) == parts
        message = said(app.run(["Read this.", *parts]))
        assert message["content"] == "Read this."
        texts = [each["content"]["text"] for each in message["multipartContent"]]
        # A blob that is text is told by its content, as a file is.
        assert texts == ["[notes]", "desk:notes:\n```\nblob of notes\n```"]
        assert app.read_attachment("shelf:notes") is None
        with pytest.raises(ToolError, match="the drawer is locked"):
            app.read_attachment("desk:locked")
        with pytest.raises(InputError, match="is said to be image/jpeg, but its content is image/"):
            app.read_attachment("desk:lie")


def test_a_tool_keeps_secrets_of_its_own_and_sees_no_others() -> None:
    class Vault(Desk):
        name = "vault"

    with AgentApplication(CONFIG, tools=[Desk, Vault]) as app:
        tools = {each.plugin.name: each.config["plugin_keys"] for each in app.stack().tools}
        tools["desk"].write("login", "a-secret-of-the-desk")
        assert tools["desk"].read("login") == "a-secret-of-the-desk"
        assert tools["vault"].read("login") is None
        # A provider that calls its key so does not get it either.
        from agent_host.key_store import KeyStore

        assert KeyStore().resolve_secret("tool:desk:login", {}) is None
        assert tools["vault"].remove("login") is False
        assert tools["desk"].remove("login") is True
        assert tools["desk"].read("login") is None


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from test_prompts_and_attachments import Desk
from agent_host import AgentApplication
from agent_host.cli.chat.conversation import Asked, Conversation
from agent_host.cli.chat.plain import converse_plainly

with AgentApplication({config!r}, tools=[Desk]) as app:
    sys.exit(converse_plainly(Conversation(app, Asked(), is_stored=False)))
"""


def converse(*lines: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(folder=str(Path(__file__).parent), config=CONFIG)
    return subprocess.run(
        [sys.executable, "-c", program],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_prompt_is_a_slash_command_of_a_conversation() -> None:
    done = converse("/help", "/desk:letter kind", "/desk:letter style='very short'")
    assert done.returncode == 0, done.stderr
    assert "/desk:letter style=…" in done.stdout
    # The person sees what is sent in their name, and the model gets it.
    assert "> Write a kind letter to Ada." in done.stderr
    assert "Write a kind letter to Ada." in done.stdout
    assert "Write a very short letter to Ada." in done.stdout


def test_a_prompt_without_what_it_needs_says_so_where_nobody_can_be_asked() -> None:
    done = converse("/desk:letter")
    assert done.returncode == 1
    assert "/desk:letter needs style" in done.stderr


def test_an_address_of_a_plugin_is_attached_by_name_and_others_are_text() -> None:
    done = converse(
        "Read @desk:notes and @shelf:notes.", "/attach desk:more", "/attach shelf:more", "Go on."
    )
    assert "blob of notes" in done.stdout
    assert "With the next message: desk:more" in done.stdout
    assert "shelf:more cannot be read" in done.stderr
    assert "blob of more" in done.stdout


def test_no_plugin_takes_the_place_of_a_command_and_none_that_fails_takes_the_help() -> None:
    from agent_host.cli.chat.commands import COMMANDS, all_commands
    from agent_host.cli.chat.conversation import Asked, Conversation

    class Thief(Desk):
        def get_prompts(self) -> list[dict[str, Any]]:
            return [{"name": "exit"}, {"name": "desk:letter"}]

    with AgentApplication(CONFIG, tools=[Thief]) as app:
        conversation = Conversation(app, Asked(), is_stored=False)
        found = all_commands(conversation)
        assert found["exit"] is COMMANDS["exit"]
        assert "desk:letter" in found
        # Where plugins cannot be asked, what was known before is shown.
        conversation.asked = Asked(provider="nobody")
        assert [*all_commands(conversation)] == [*found]
