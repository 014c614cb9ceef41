"""A graph of a stack as Mermaid, which many pages and editors draw by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from agent_host.cli.graph import Card, Graph

__all__ = ["write_mermaid"]

#: Fills that dark and light pages leave readable, because each brings the colour of its text.
_STYLES = {
    "provider": "fill:#0969da,color:#ffffff,stroke:#0550ae",
    "extension": "fill:#8250df,color:#ffffff,stroke:#6639ba",
    "feature": "fill:#1a7f37,color:#ffffff,stroke:#116329",
    "tool": "fill:#bc4c00,color:#ffffff,stroke:#953800",
    "tag": "fill:#eaeef2,color:#1f2328,stroke:#8c959f",
    "off": "fill:#ffffff,color:#59636e,stroke:#8c959f,stroke-dasharray:4 3",
}


_BREAK = "<br/>"


def write_mermaid(graph: Graph) -> str:
    """A flowchart: rounds as boxes from left to right, tags between them, hooks below."""
    return "\n".join(["flowchart LR", *_lines(graph)]) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    ids: dict[str, str] = {}
    links: list[str] = []
    for number, column in enumerate(graph.columns):
        yield f'  subgraph round{number}["{_text(column.title)}"]'
        yield "    direction TB"
        for card in column.cards:
            own = f"p{number}_{len(ids)}"
            ids[f"{card.key} {number}"] = own
            place = f"{card.number}. " if card.number and card.role != "provider" else ""
            yield f'    {own}["{place}{_text(card.name)}{_BREAK}{card.role}"]:::{_style(card)}'
            links += [f"  {_tag_id(tag)} --> {own}" for tag in card.required_tags]
            links += [f"  {own} --> {_tag_id(tag)}" for tag in card.provided_tags]
        yield "  end"
        links += [f"  round{number} --> {_tag_id(tag)}" for tag in column.gained]
        links += [f"  round{number} -. loses .-> {_tag_id(tag)}" for tag in column.lost]
    for tag in sorted(_all_tags(graph)):
        yield f'  {_tag_id(tag)}(["{_text(tag)}"]):::tag'
    yield from links
    yield from _calls(graph)
    for name, style in _STYLES.items():
        yield f"  classDef {name} {style}"


def _calls(graph: Graph) -> Iterator[str]:
    """The plugins of each role in their order, with the hooks that are called in that order."""
    for lane in graph.lanes:
        yield f'  subgraph calls_{lane.role}["Calls of {lane.role}s"]'
        yield "    direction LR"
        for number, name in enumerate(lane.plugins, 1):
            yield f'    c_{lane.role}{number}["{number}. {_text(name)}"]:::{lane.role}'
        if len(lane.plugins) > 1:
            yield "    " + " --> ".join(
                f"c_{lane.role}{number}" for number in range(1, len(lane.plugins) + 1)
            )
        hooks = _BREAK.join(f"{hook}: {' → '.join(marks)}" for hook, marks in lane.hooks)
        yield f'    h_{lane.role}["{_text(hooks)}"]:::off'
        yield "  end"
    for texts in graph.suggestions:
        yield f'  off_{_word(texts[0])}["{_text(_BREAK.join(filter(None, texts)))}"]:::off'


def _all_tags(graph: Graph) -> set[str]:
    return {
        tag
        for column in graph.columns
        for tags in (column.gained, column.lost, *_card_tags(column.cards))
        for tag in tags
    }


def _card_tags(cards: tuple[Card, ...]) -> Iterator[tuple[str, ...]]:
    for card in cards:
        yield card.required_tags
        yield card.provided_tags


def _style(card: Card) -> str:
    return "off" if card.has_left else card.role


def _tag_id(tag: str) -> str:
    return f"t_{_word(tag)}"


def _word(text: str) -> str:
    """A text as Mermaid wants its ids; other texts have other words."""
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in text)


def _text(text: str) -> str:
    """A label; what Mermaid would read as more than text is written by its number."""
    lines = text.split(_BREAK)
    return _BREAK.join("".join(f"#{ord(c)};" if c in '&<>"#;`' else c for c in s) for s in lines)
