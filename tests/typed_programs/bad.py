"""A program with mistakes: each line that says ``# wrong`` is found by both type checkers."""

from __future__ import annotations

from agent_host import AgentApplication, AppConfig, Event

AppConfig(agnets={})  # wrong
AppConfig(tools={"max_turn": 3})  # wrong


def show(event: Event) -> None:
    print(event["typ"])  # wrong
    if event["type"] == "done":
        print(event["finsh"])  # wrong
    if event["type"] == "final":
        event["session"].message  # wrong


def ask(app: AgentApplication) -> None:
    app.run("Hello", modle="m")  # wrong
    app.stream("Hello", limits={"max_turn": 1})  # wrong
    app.run("Hello", park="yes")  # wrong
    app.run(3)  # wrong
    app.run("How many?", output_type=int).data.upper()  # wrong
    app.run("Hello").txt  # wrong
    app.resume("a", modle="m")  # wrong
    app.agent("default").as_tool(limits={"max_turn": 1})  # wrong


async def ask_later(app: AgentApplication) -> None:
    await app.arun("Hello", sesion="s")  # wrong
    app.astream("Hello", provder="p")  # wrong
