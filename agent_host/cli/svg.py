"""A graph of a stack as SVG: rounds from left to right, tags as lines, the order of calls below.

Written as plain text, with colours for light and dark and the fonts of whoever looks at it. It must
not know what a stack is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from agent_hookspecs.values import dataclass
from agent_host.cli.graph import Card, Column, Graph, Lane

__all__ = ["write_svg"]

_MARGIN = 28
_MIN_WIDTH = 900
_CARD = 252
#: Between two columns, where the lines run.
_GAP = 88
_ROW = 18
_PAD = 11
_BADGE = 9
#: The average width of a letter, as a share of the font's size; nobody here can measure text.
_LETTER = 0.57

_LIGHT = {
    "page": "#ffffff",
    "card": "#f6f8fa",
    "edge": "#d0d7de",
    "text": "#1f2328",
    "muted": "#59636e",
    "provider": "#0969da",
    "extension": "#8250df",
    "feature": "#1a7f37",
    "tool": "#bc4c00",
    "on": "#ffffff",
}
_DARK = {
    "page": "#0d1117",
    "card": "#161b22",
    "edge": "#3d444d",
    "text": "#f0f6fc",
    "muted": "#9198a1",
    "provider": "#4493f8",
    "extension": "#ab7df8",
    "feature": "#3fb950",
    "tool": "#f0883e",
    "on": "#0d1117",
}
_ROLES = ("provider", "extension", "feature", "tool")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A card with its place, its name in lines, and how high it is."""

    card: Card
    column: int
    x: float
    y: float
    lines: tuple[str, ...]

    @property
    def tags_from(self) -> float:
        """Where the first row of tags has its middle."""
        return self.y + _PAD + _ROW * (len(self.lines) + 1) + _ROW / 2

    @property
    def height(self) -> float:
        rows = len(self.lines) + 1 + len(self.card.required_tags) + len(self.card.provided_tags)
        return 2 * _PAD + _ROW * rows - 2

    def required_rows(self) -> Iterator[tuple[str, float]]:
        """Each tag that it requires, with the middle of its row."""
        for number, tag in enumerate(self.card.required_tags):
            yield tag, self.tags_from + number * _ROW

    def provided_rows(self) -> Iterator[tuple[str, float]]:
        """Each tag that it provides, with the middle of its row."""
        for number, tag in enumerate(self.card.provided_tags, len(self.card.required_tags)):
            yield tag, self.tags_from + number * _ROW


@dataclass(frozen=True, slots=True)
class _RoundTag:
    """A tag that came or went in a round, and that no card has; with the middle of its row."""

    column: int
    x: float
    y: float
    tag: str
    lost: bool


def write_svg(graph: Graph) -> str:
    """The graph as a whole SVG document."""
    columns = len(graph.columns)
    width = max(_MIN_WIDTH, 2 * _MARGIN + columns * _CARD + (columns - 1) * _GAP)
    placed, round_tags, bottom = _place_columns(graph.columns, width)
    body: list[str] = []
    lanes, bottom = _draw_lanes(graph.lanes, width, bottom + 26)
    suggestions, bottom = _draw_suggestions(graph.suggestions, width, bottom)
    height = round(bottom + 14)
    body += [*_draw_titles(graph.columns, width), *_draw_lines(placed, round_tags)]
    body += [*map(_draw_card, placed), *_draw_round_tags(round_tags), *lanes, *suggestions]
    subtitle = (
        "A line is a tag that lets a plugin in. Numbers are places in the order of calls, by role."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title subtitle">',
        f'<title id="title">Plugins of {escape(graph.title)}</title>',
        f'<desc id="subtitle">{subtitle}</desc>',
        f"<style>{_style()}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10"/>',
        _text(_MARGIN, 36, graph.title, "title"),
        _text(_MARGIN, 57, subtitle, "muted"),
        *body,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style() -> str:
    """Every colour as a rule of its own: not all viewers know variables."""
    font = "-apple-system,BlinkMacSystemFont,'Segoe UI','DejaVu Sans',sans-serif"
    shapes = (
        f"text{{font-family:{font};font-size:12.5px}}"
        "text.title{font-size:19px;font-weight:600}text.head{font-size:14px;font-weight:600}"
        "text.name{font-size:13px;font-weight:600}text.num{font-size:11px;font-weight:700}"
        "text.small{font-size:11.5px}.gone{opacity:.55}.dashed{stroke-dasharray:4 3}"
        "text.lost{text-decoration:line-through}.line{fill:none;stroke-width:1.6;opacity:.6}"
        ".ring{stroke-width:1.6}"
    )
    return shapes + _colours(_LIGHT) + f"@media (prefers-color-scheme:dark){{{_colours(_DARK)}}}"


def _colours(colours: dict[str, str]) -> str:
    rules = [
        f".page{{fill:{colours['page']};stroke:{colours['edge']}}}",
        f".card{{fill:{colours['card']};stroke:{colours['edge']}}}",
        f".rule{{stroke:{colours['edge']}}}",
        f"text{{fill:{colours['text']}}}text.muted{{fill:{colours['muted']}}}",
        f"text.num{{fill:{colours['on']}}}",
        f".hollow{{fill:{colours['page']};stroke:{colours['muted']}}}",
    ]
    for role in _ROLES:
        colour = colours[role]
        rules.append(
            f".fill-{role}{{fill:{colour}}}.line-{role}{{stroke:{colour}}}"
            f"text.ink-{role}{{fill:{colour}}}"
            f".ring-{role}{{fill:{colours['page']};stroke:{colour}}}"
        )
    return "".join(rules)


def _column_x(number: int, columns: int, width: float) -> float:
    if columns == 1:
        return _MARGIN
    return _MARGIN + number * (width - 2 * _MARGIN - _CARD) / (columns - 1)


#: Where the cards begin, below the titles of the columns.
_TOP = 108


def _place_columns(
    columns: Sequence[Column], width: float
) -> tuple[list[_Placed], list[_RoundTag], float]:
    """The cards in their places; tags of a round that no card gives; and where it all ends."""
    placed: list[_Placed] = []
    round_tags: list[_RoundTag] = []
    bottom = float(_TOP)
    for number, column in enumerate(columns):
        x, y = _column_x(number, len(columns), width), float(_TOP)
        for card in column.cards:
            lines = tuple(_wrap_name(card.name, _CARD - 54, 14.6))
            placed.append(_Placed(card, number, x, y, lines))
            y += placed[-1].height + 14
        for tag, lost in (
            *((tag, False) for tag in column.gained),
            *((tag, True) for tag in column.lost),
        ):
            round_tags.append(_RoundTag(number, x, y + _ROW / 2, tag, lost))
            y += _ROW
        bottom = max(bottom, y)
    return placed, round_tags, bottom


def _draw_titles(columns: Sequence[Column], width: float) -> Iterator[str]:
    for number, column in enumerate(columns):
        yield _text(_column_x(number, len(columns), width), _TOP - 14, column.title, "head")


def _draw_lines(placed: Sequence[_Placed], round_tags: Sequence[_RoundTag]) -> Iterator[str]:
    """A line from where a tag came to each plugin that it let in."""
    sources = [
        (each.column, each.x + _CARD, y, tag) for each in placed for tag, y in each.provided_rows()
    ]
    sources += [(of.column, of.x + _CARD, of.y, of.tag) for of in round_tags if not of.lost]
    for each in placed:
        for tag, y in each.required_rows():
            found = [at for at in sources if at[3] == tag and at[0] < each.column]
            if found:
                _, start, above, _ = max(found)
                bend = (each.x - start) * 0.5
                yield (
                    f'<path class="line line-{each.card.role}" d="M{start:g} {above:g} '
                    f'C{start + bend:g} {above:g} {each.x - bend:g} {y:g} {each.x:g} {y:g}"/>'
                )


def _draw_card(each: _Placed) -> str:
    card, x, y = each.card, each.x, each.y
    parts = [
        f'<rect class="card{" dashed" if card.has_left else ""}" x="{x:g}" y="{y:g}" '
        f'width="{_CARD}" height="{each.height:g}" rx="7"/>',
        f'<rect class="fill-{card.role}" x="{x:g}" y="{y + 7:g}" width="4" '
        f'height="{each.height - 14:g}" rx="2"/>',
    ]
    left = x + 16
    if card.number is not None:
        parts.append(_badge(left + _BADGE, y + _PAD + _ROW / 2, str(card.number), card.role))
        left += 2 * _BADGE + 8
    for number, line in enumerate(each.lines):
        parts.append(_text(left, y + _PAD + 13.5 + number * _ROW, line, "name"))
    role = f"{card.role}, which left again" if card.has_left else card.role
    parts.append(
        _text(left, y + _PAD + 12 + len(each.lines) * _ROW, role, f"small ink-{card.role}")
    )
    for tag, middle in each.required_rows():
        parts.append(_dot(x, middle, card.role))
        parts.append(_text(x + 16, middle + 4, _cut(tag, _CARD - 30, 12.5), ""))
    for tag, middle in each.provided_rows():
        parts.append(_dot(x + _CARD, middle, card.role))
        shown = _cut(tag, _CARD - 30, 12.5)
        parts.append(_text(x + _CARD - 12, middle + 4, shown, "", anchor="end"))
    gone = ' class="gone"' if card.has_left else ""
    return f"<g{gone}>{''.join(parts)}</g>"


def _draw_round_tags(round_tags: Sequence[_RoundTag]) -> Iterator[str]:
    for each in round_tags:
        x, y = each.x + _CARD, each.y
        if not each.lost:
            yield f'<circle class="hollow" cx="{x:g}" cy="{y:g}" r="3.5"/>'
        text = _cut(each.tag, _CARD - 30, 12.5)
        yield _text(x - 12, y + 4, text, "lost muted" if each.lost else "", anchor="end")


def _draw_lanes(lanes: Sequence[Lane], width: float, top: float) -> tuple[list[str], float]:
    """For each role, its plugins by number and the hooks with the numbers they call."""
    parts = [_rule(width, top - 8), _text(_MARGIN, top + 18, "Order of calls", "head")]
    y = top + 46
    for lane in lanes:
        x = _MARGIN + 92.0
        parts.append(_text(_MARGIN, y, f"{lane.role}s", f"name ink-{lane.role}"))
        for number, name in enumerate(lane.plugins, 1):
            wide = 2 * _BADGE + 10 + len(name) * 13 * 0.6 + 22
            if x + wide > width - _MARGIN and x > _MARGIN + 92:
                x, y = _MARGIN + 92.0, y + 24
            parts.append(_badge(x + _BADGE, y - 4.5, str(number), lane.role))
            parts.append(_text(x + 2 * _BADGE + 7, y, name, "name"))
            x += wide
        drawn, y = _draw_hooks(lane, width, y + 24)
        parts += drawn
        y += 18
    if any(mark.endswith("↻") for lane in lanes for _, marks in lane.hooks for mark in marks):
        text = "An open circle is a wrapper: it begins before the others and ends after them."
        parts.append(_text(_MARGIN, y, text, "muted small"))
        y += 20
    return parts, y


def _draw_hooks(lane: Lane, width: float, y: float) -> tuple[list[str], float]:
    parts: list[str] = []
    left = _MARGIN + 92.0
    room = width - _MARGIN - left
    # Where one plugin has them all, there is no order to show.
    alone = len(lane.plugins) == 1
    longest = 0 if alone else max((len(marks) for _, marks in lane.hooks), default=0)
    name = max((len(hook) for hook, _ in lane.hooks), default=0) * 12.5 * _LETTER + 14
    columns = max(1, int(room // (name + longest * 34 + 10)))
    per = max(1, int((room - name) // 34)) if columns == 1 else max(longest, 1)
    rows = -(-len(lane.hooks) // columns)
    heights = [0.0] * columns
    for number, (hook, marks) in enumerate(lane.hooks):
        column = number // rows
        x, line = left + column * room / columns, y + heights[column]
        parts.append(_text(x, line, hook, "muted" if alone else ""))
        for place, mark in enumerate(() if alone else marks):
            at = x + name + _BADGE + place % per * 34
            above = line + place // per * 22 - 4.5
            if place % per:
                parts.append(_text(at - 23, above + 4, "→", "muted small"))
            parts.append(_badge(at, above, mark, lane.role))
        taken = 1 if alone else max(1, -(-len(marks) // per))
        heights[column] += 20 if alone else 22 * taken
    return parts, y + max(heights)


def _draw_suggestions(
    suggestions: Sequence[tuple[str, str, str]], width: float, top: float
) -> tuple[list[str], float]:
    if not suggestions:
        return [], top
    parts = [_rule(width, top), _text(_MARGIN, top + 27, "Off, and may be wanted", "head")]
    y = top + 52
    for key, reason, remedy in suggestions:
        parts.append(_text(_MARGIN, y, key, "name"))
        y += 19
        for text, style in ((reason, "muted"), (remedy, "")):
            for line in _wrap_words(text, width - 2 * _MARGIN - 16, 12.5):
                parts.append(_text(_MARGIN + 16, y, line, style))
                y += 18
        y += 6
    return parts, y


def _badge(x: float, y: float, mark: str, role: str) -> str:
    wrapper = mark.endswith("↻")
    number = mark.rstrip("↻")
    shape = f"ring ring-{role}" if wrapper else f"fill-{role}"
    ink = f"num ink-{role}" if wrapper else "num"
    circle = f'<circle class="{shape}" cx="{x:g}" cy="{y:g}" r="{_BADGE}"/>'
    return circle + _text(x, y + 4, number, ink, anchor="middle")


def _dot(x: float, y: float, role: str) -> str:
    return f'<circle class="fill-{role}" cx="{x:g}" cy="{y:g}" r="3.5"/>'


def _rule(width: float, y: float) -> str:
    return f'<path class="rule" d="M{_MARGIN} {y:g}H{width - _MARGIN:g}"/>'


def _text(x: float, y: float, text: str, style: str, *, anchor: str = "") -> str:
    how = f' class="{style}"' if style else ""
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{how} x="{x:g}" y="{y:g}"{where}>{escape(text)}</text>'


def _fits(text: str, room: float, size: float) -> bool:
    return len(text) * size * _LETTER <= room


def _cut(text: str, room: float, size: float) -> str:
    """The text, or as much of it as there is room for."""
    if _fits(text, room, size):
        return text
    return text[: max(1, int(room / (size * _LETTER)) - 1)] + "…"


def _wrap_name(name: str, room: float, size: float) -> Iterator[str]:
    """The lines of a name, broken after what joins its words."""
    return _join_pieces(re.findall(r"[^_.:-]*[_.:-]?", name), room, size)


def _wrap_words(text: str, room: float, size: float) -> Iterator[str]:
    return _join_pieces([f"{word} " for word in text.split(" ")], room, size)


def _join_pieces(pieces: Iterable[str], room: float, size: float) -> Iterator[str]:
    line = ""
    for piece in pieces:
        if line and not _fits(line + piece, room, size):
            yield _cut(line.rstrip(), room, size)
            line = ""
        line += piece
    if line.strip():
        yield _cut(line.rstrip(), room, size)
