"""What ``plugins explain --graph`` draws of a stack, in which format by the file's ending.

A drawing is made of columns: the provider, then what each round of the gate changed. It is read off
a stack; how it looks is the business of `svg` and `mermaid`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.values import dataclass
from agent_host.cli.outside import clean_text
from agent_host.plugins.explanation import absentees, suggestions
from agent_host.plugins.resolve import HookOrder
from agent_host.plugins.stack import Stack

__all__ = ["ENDINGS", "Card", "Column", "Graph", "Lane", "draw_stack"]

#: The formats that there are, by the ending of a file.
ENDINGS = (".svg", ".mmd")


@dataclass(frozen=True, slots=True)
class Card:
    """A plugin where it stands in a column. ``number`` is its place among those of its role.

    ``has_left`` says that it left again in a later round, which is why it has no number.
    """

    key: str
    role: PluginRole
    name: str
    number: int | None
    required_tags: tuple[str, ...] = ()
    provided_tags: tuple[str, ...] = ()
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """The provider, or a round: who came, and which tags came and went with it."""

    title: str
    cards: tuple[Card, ...]
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """The hooks of a role: each with the numbers of the plugins that it calls, in order.

    A number with a mark is a wrapper, which begins before the others and ends after them.
    """

    role: PluginRole
    plugins: tuple[str, ...]
    hooks: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """All that is drawn. ``suggestions`` are plugins that are off: each with reason and remedy."""

    title: str
    columns: tuple[Column, ...]
    lanes: tuple[Lane, ...]
    suggestions: tuple[tuple[str, str, str], ...]


def draw_stack(stack: Stack, model: str | None, file: str) -> str:
    """The drawing of a stack as text, in the format that the name of the file asks for."""
    graph = _graph_of(stack, model)
    if file.endswith(".mmd"):
        from agent_host.cli.mermaid import write_mermaid

        return write_mermaid(graph)
    from agent_host.cli.svg import write_svg

    return write_svg(graph)


def _graph_of(stack: Stack, model: str | None) -> Graph:
    resolution = stack.resolution
    numbers = {
        f"{role}:{plugin.name}": number
        for role in PLUGIN_ROLES
        for number, plugin in enumerate(resolution.plugins[role], 1)
    }
    provider = resolution.provider
    first = Card(
        provider.key,
        "provider",
        clean_text(provider.name),
        1,
        provided_tags=_clean(sorted(resolution.provider_tags)),
    )
    title = " · ".join(filter(None, (clean_text(provider.name), clean_text(model or ""))))
    return Graph(
        title,
        (Column("Provider", (first,)), *_rounds(stack, numbers)),
        tuple(_lanes(stack)),
        tuple(
            (clean_text(each.key), clean_text(each.reason), clean_text(each.remedy))
            for each in suggestions([*absentees(resolution)])
        ),
    )


def _rounds(stack: Stack, numbers: dict[str, int]) -> Iterator[Column]:
    resolution = stack.resolution
    entries = {record.key: record.entry for record in resolution.catalog if record.usable}
    last = {
        key: number
        for number, change in enumerate(resolution.gating.rounds)
        for key in change.joined
    }
    for number, change in enumerate(resolution.gating.rounds):
        cards = []
        for key in sorted(change.joined, key=lambda key: _rank(key, numbers)):
            entry = entries[key]
            assert entry is not None, "it has joined"
            assert entry.role is not None, "it has joined"
            stays = key in numbers and last[key] == number
            provided = tuple(tag for tag in entry.provides_tags if tag in change.gained)
            cards.append(
                Card(
                    key,
                    entry.role,
                    clean_text(entry.name or ""),
                    numbers[key] if stays else None,
                    _clean(entry.required_tags),
                    _clean(provided),
                    not stays,
                )
            )
        given = {tag for card in cards for tag in card.provided_tags}
        gained = tuple(tag for tag in _clean(change.gained) if tag not in given)
        yield Column(f"Round {number + 1}", tuple(cards), gained, _clean(change.lost))


def _rank(key: str, numbers: dict[str, int]) -> tuple[int, int, str]:
    role = key.partition(":")[0]
    place = next(n for n, each in enumerate(PLUGIN_ROLES) if each == role)
    return place, numbers.get(key, len(numbers)), key


def _lanes(stack: Stack) -> Iterator[Lane]:
    orders = [*stack.resolution.hook_orders()]
    for role in PLUGIN_ROLES:
        names = [plugin.name for plugin in stack.resolution.plugins[role]]
        hooks = tuple(
            (order.hook, tuple(_call_marks(order, names))) for order in orders if order.role == role
        )
        if names:
            yield Lane(role, _clean(names), hooks)


def _call_marks(order: HookOrder, names: Sequence[str]) -> Iterator[str]:
    for placed in order.plugins:
        mark = "↻" if "wrapper" in placed.why.split("; ") else ""
        yield f"{names.index(placed.name) + 1}{mark}"


def _clean(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(clean_text, texts))
