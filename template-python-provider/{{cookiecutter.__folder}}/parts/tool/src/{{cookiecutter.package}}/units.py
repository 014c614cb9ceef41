"""The tool plugin ``{{ cookiecutter.__snake ~ "_units" if cookiecutter.kind == "mix" else cookiecutter.plugin_id }}``: converts units of measurement.

A typed function is a tool: the schema comes from its signature, what the model reads of it from
its docstring. Names of tools are the same for every package, so these begin with the plugin's.
"""

from __future__ import annotations

from typing import Literal

from agent_hookspecs import ToolArgumentsError
from agent_hookspecs.authoring import tool, tools

from {{ cookiecutter.package }}._version import __version__

__all__ = ["Units", "convert", "units"]

Unit = Literal["m", "km", "mi", "ft", "in", "kg", "g", "lb", "oz", "C", "F", "K"]

#: What a unit measures, how large it is, and where its zero is, in metres, kilograms or kelvins.
UNITS: dict[str, tuple[str, float, float]] = {
    "m": ("length", 1.0, 0.0),
    "km": ("length", 1000.0, 0.0),
    "mi": ("length", 1609.344, 0.0),
    "ft": ("length", 0.3048, 0.0),
    "in": ("length", 0.0254, 0.0),
    "kg": ("mass", 1.0, 0.0),
    "g": ("mass", 0.001, 0.0),
    "lb": ("mass", 0.45359237, 0.0),
    "oz": ("mass", 0.028349523125, 0.0),
    "K": ("temperature", 1.0, 0.0),
    "C": ("temperature", 1.0, 273.15),
    "F": ("temperature", 5 / 9, 273.15 - 32 * 5 / 9),
}


@tool(effect="read", name="{{ cookiecutter.__snake }}_convert")
def convert(value: float, source: Unit, target: Unit) -> str:
    """Convert a measurement from one unit to another of the same quantity.

    Args:
        value: The number to convert.
        source: The unit it is in.
        target: The unit to convert it to.
    """
    quantity, size, zero = UNITS[source]
    wanted, target_size, target_zero = UNITS[target]
    if quantity != wanted:
        raise ToolArgumentsError(
            f"{source} measures {quantity} and {target} measures {wanted}",
            hint="choose two units of the same quantity",
        )
    converted = (value * size + zero - target_zero) / target_size
    return f"{value:g} {source} = {converted:.6g} {target}"


@tool(effect="read", name="{{ cookiecutter.__snake }}_units")
def units() -> dict[str, list[str]]:
    """List the units that can be converted, by what they measure."""
    found: dict[str, list[str]] = {}
    for unit, (quantity, _, _) in UNITS.items():
        found.setdefault(quantity, []).append(unit)
    return found


Units = tools(
    convert,
    units,
    name="{{ cookiecutter.__snake ~ '_units' if cookiecutter.kind == 'mix' else cookiecutter.plugin_id }}",
    version=__version__,
)
