"""A program that both type checkers take, with the types that its author expects."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import assert_type

from agent_host import (
    AgentApplication,
    Answer,
    AppConfig,
    Approval,
    Event,
    Image,
    Limits,
    OutputError,
    Session,
    Stream,
)


@dataclass
class City:
    name: str
    people: int


def approve(approval: Approval) -> bool:
    return approval.use.effect == "read"


def show(event: Event) -> None:
    if event["type"] == "partial":
        print(event["message"])
    elif event["type"] == "final":
        print(event["session"].id, event["messages"][0]["content"])
    elif event["type"] == "done":
        print(event["finish"], event["limit"])


def ask(app: AgentApplication, session: Session) -> None:
    answer = app.run("Hello", session=session, limits={"max_turns": 1}, settings={"seed": 1})
    print(answer.text, answer.usage.get("output"), answer.cost, answer.finish)
    city = app.run(["Which?", Image("map.png")], output_type=City, output_retries=1)
    assert_type(city, Answer[City])
    assert_type(city.data.people, int)
    count = app.run("How many?", output_type=int, limits=Limits(turns=1)).data
    assert_type(count, int)
    with app.stream("Tell", output_type=City, agent="default", park=False) as stream:
        assert_type(stream, Stream[Answer[City]])
        for event in stream:
            show(event)
        assert_type(stream.answer.data, City)
    app.run("Tell", output_type={"type": "object"}).data["anything"]
    app.resume("a", {"b": "once"}, approve=approve)
    # Of a union no checker sees the type, so it is said.
    either: Answer[City | int] = app.run("Which?", output_type=City | int)
    assert_type(either.data, City | int)
    app.run("Ask", tools=[app.agent("default").as_tool(limits={"max_turns": 1})])


async def ask_later(app: AgentApplication) -> City | None:
    try:
        return (await app.arun("Which?", output_type=City)).data
    except OutputError as error:
        print(error.text)
        return None


config = AppConfig(agents={"default": {"provider": "echo"}}, tools={"max_turns": 3})
with AgentApplication(config, approve=approve) as app:
    ask(app, app.create_session())
