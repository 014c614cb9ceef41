"""Bar charts as SVG, written as plain text.

Owns how a chart looks; what it shows, and of which numbers, is the business of `charts`. A chart
brings its own background, and colours for readers who prefer a dark one, so that it can stand on
any page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "Chart", "Group", "Line", "draw"]

_WIDTH = 760
_MARGIN = 24
_ROW, _BAR = 22, 14
_GAP = 14
_HEADING = 20
#: The average width of a letter, as a share of the font's size; nobody here can measure text.
_LETTER = 0.56

_LIGHT = {
    "card": "#ffffff",
    "edge": "#d0d7de",
    "text": "#1f2328",
    "muted": "#59636e",
    "grid": "#e4e8ec",
    "ours": "#0969da",
    "ours-second": "#6cb0f5",
    "ours-third": "#b6dafc",
    "base": "#8c959f",
    "other": "#c2c9d0",
    "mark": "#bc4c00",
}
_DARK = {
    "card": "#0d1117",
    "edge": "#3d444d",
    "text": "#f0f6fc",
    "muted": "#9198a1",
    "grid": "#262c36",
    "ours": "#4493f8",
    "ours-second": "#2a66b4",
    "ours-third": "#1d4273",
    "base": "#858d97",
    "other": "#545d68",
    "mark": "#f0883e",
}
_BARS = ("ours", "ours-second", "ours-third", "base", "other")


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: whose it is, how long, what is written at its end, and the name of its colour."""

    label: str
    value: float
    text: str
    colour: str = "other"


@dataclass(frozen=True, slots=True)
class Group:
    """Bars that belong together, under a heading; without one they simply follow."""

    heading: str
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Line:
    """A vertical line that bars are compared with."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``subtitle`` says the unit and which way is better, ``footer`` whence the numbers are."""

    title: str
    subtitle: str
    footer: str
    groups: Sequence[Group]
    lines: Sequence[Line] = ()


def draw(chart: Chart) -> str:
    """The chart as a whole SVG document."""
    left = _MARGIN + _text_width((bar.label for group in chart.groups for bar in group.bars), 12)
    right = (
        _WIDTH
        - _MARGIN
        - _text_width((bar.text for group in chart.groups for bar in group.bars), 12)
    )
    longest = max(
        [bar.value for group in chart.groups for bar in group.bars]
        + [line.value for line in chart.lines]
    )
    scale = (right - left) / longest
    top = 84 if chart.lines else 68
    body = list(_bars(chart.groups, left, top, scale))
    bottom = top + _height(chart.groups)
    height = bottom + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="title subtitle">',
        f'<title id="title">{escape(chart.title)}</title>',
        f'<desc id="subtitle">{escape(chart.subtitle)}</desc>',
        f"<style>{_style()}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
        _text(_MARGIN, 30, chart.title, "title"),
        _text(_MARGIN, 50, chart.subtitle, "subtitle"),
        *_grid(left, right, top, bottom, longest),
        *_lines(chart.lines, left, top, bottom, scale),
        *body,
        _text(_MARGIN, height - 12, chart.footer, "footer"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style() -> str:
    """Every colour as a rule of its own: not all viewers know variables."""
    font = "-apple-system,BlinkMacSystemFont,'Segoe UI','DejaVu Sans',sans-serif"
    shapes = (
        f"text{{font-family:{font};font-size:12px}}"
        "text.title{font-size:16px;font-weight:600}text.heading{font-weight:600}"
        "text.footer,text.mark,text.tick{font-size:11px}"
        ".line{stroke-width:1.5;stroke-dasharray:4 3}"
        # Words stay readable where a line runs through them.
        "text.value,text.heading{stroke-width:4px;paint-order:stroke;stroke-linejoin:round}"
    )
    dark = f"@media (prefers-color-scheme:dark){{{_colours(_DARK)}}}"
    return shapes + _colours(_LIGHT) + dark


def _colours(colours: dict[str, str]) -> str:
    bars = "".join(f"rect.{name}{{fill:{colours[name]}}}" for name in _BARS)
    return (
        f"text{{fill:{colours['text']}}}"
        f"text.subtitle,text.footer,text.label,text.tick{{fill:{colours['muted']}}}"
        f"text.mark{{fill:{colours['mark']}}}"
        f"text.value,text.heading{{stroke:{colours['card']}}}"
        f".line{{stroke:{colours['mark']}}}.grid{{stroke:{colours['grid']}}}"
        f"rect.card{{fill:{colours['card']};stroke:{colours['edge']}}}{bars}"
    )


def _text_width(texts: Iterable[str], size: int) -> int:
    """Room for the longest of the texts, and a little between it and what stands beside it."""
    return round(max((len(text) for text in texts), default=0) * size * _LETTER) + 14


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _height(groups: Sequence[Group]) -> int:
    return sum(
        (_HEADING if group.heading else 0) + _ROW * len(group.bars) + _GAP for group in groups
    )


def _bars(groups: Sequence[Group], left: float, top: float, scale: float) -> Iterator[str]:
    y = top
    for group in groups:
        if group.heading:
            yield _text(_MARGIN, y + 13, group.heading, "heading")
            y += _HEADING
        for bar in group.bars:
            width = max(bar.value * scale, 1)
            middle = y + _BAR / 2 + 5
            yield _text(left - 8, middle, bar.label, "label", "end")
            yield (
                f'<rect class="{bar.colour}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{_BAR}" rx="2"/>'
            )
            yield _text(left + width + 6, middle, bar.text, "value")
            y += _ROW
        y += _GAP


def _grid(left: float, right: float, top: float, bottom: float, longest: float) -> Iterator[str]:
    """Thin lines at round values, from the left edge of all bars on."""
    step = _step(longest)
    value = 0.0
    while value <= longest:
        x = left + (right - left) * value / longest
        yield f'<path class="grid" d="M{x:.1f} {top - 4:.1f}V{bottom - 6:.1f}"/>'
        yield _text(x, bottom + 7, f"{value:,.10g}", "tick", "middle")
        value = round(value + step, 10)


def _step(longest: float) -> float:
    """A round distance that fits a few times into the longest bar."""
    power = 1.0
    while power * 10 <= longest:
        power *= 10
    while power > longest:
        power /= 10
    return next(power * n for n in (0.2, 0.5, 1, 2, 5) if longest / (power * n) <= 6)


def _lines(
    lines: Sequence[Line], left: float, top: float, bottom: float, scale: float
) -> Iterator[str]:
    for line in lines:
        x = left + line.value * scale
        yield f'<path class="line" d="M{x:.1f} {top - 6:.1f}V{bottom - 6:.1f}"/>'
        anchor = "end" if x > _WIDTH / 2 else "middle"
        yield _text(x + (4 if anchor == "end" else 0), top - 11, line.label, "mark", anchor)
