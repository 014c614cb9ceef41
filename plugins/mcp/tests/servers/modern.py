"""A server made with the SDK, which speaks with clients of every era.

Arguments: ``stdio``, or ``http`` and a port.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, MCPServer, Resolve
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage
from mcp_types import EmbeddedResource, ImageContent, TextResourceContents
from pydantic import BaseModel

server = MCPServer("modern", instructions="Be kind.", log_level="WARNING")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Sum(BaseModel):
    total: int


class Colour(BaseModel):
    colour: str


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
def picture() -> Image:
    """Give a picture of one pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it is broken")


@server.tool()
async def slow(context: Context, steps: int = 3) -> str:
    """Take a while and say how far it is."""
    for step in range(steps):
        await context.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(0.01)
    return "done"


@server.tool()
def tell_trace(context: Context) -> str:
    """Say which trace the call is in."""
    meta = context.request_context.meta or {}
    return str(meta.get("traceparent"))


def ask_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
async def paint(answer: Annotated[ElicitationResult[Colour], Resolve(ask_colour)]) -> str:
    """Ask for a colour."""
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool()
async def grow(context: Context) -> str:
    """Have one more tool."""
    server.add_tool(fail, name="second", description="Fails as well.")
    await context.notify_tools_changed()
    return "grown"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Please greet {name}."


@server.prompt()
def talk() -> list[Message]:
    """A talk that somebody has begun, with a picture and a note."""
    note = TextResourceContents(uri="notes://tomorrow", text="Rest.")
    pixel = ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png")
    return [
        UserMessage("What is this?"),
        UserMessage(pixel),
        AssistantMessage("A pixel."),
        UserMessage(EmbeddedResource(resource=note)),
    ]


@server.prompt()
def hidden() -> str:
    """Say something that is not seen."""
    return "Be kind.\U000e0041\u202e"


@server.resource("notes://{day}")
def notes(day: str) -> str:
    """What there is to do on a day."""
    return f"On {day}: ```rest```."


@server.resource("pixels://one", mime_type="image/png")
def pixel() -> bytes:
    """One pixel."""
    return PIXEL


@server.resource("pixels://lie", mime_type="image/jpeg")
def lie() -> bytes:
    """A picture that is not what it is said to be."""
    return PIXEL


@server.resource("notes://long")
def long_note() -> str:
    """More than anybody wants to read."""
    return "word " * 1_000


@server.resource("notes://today")
def today() -> str:
    """What there is to do today."""
    return "Write tests."


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
