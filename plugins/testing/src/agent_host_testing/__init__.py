"""The conformance kit: what tells an author that a plugin is done.

Names are loaded when first used, so that a test that only wants a fake server does not import the
host, and a pytest run that wants nothing pays for nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_host_testing._version import __version__ as __version__
    from agent_host_testing.faults import (
        Drip as Drip,
        Reset as Reset,
        Split as Split,
        Stall as Stall,
        Truncate as Truncate,
        WrongLength as WrongLength,
        empty_body as empty_body,
        html_page as html_page,
        overloaded as overloaded,
        plain_text as plain_text,
        rate_limited as rate_limited,
        retry_headers as retry_headers,
    )
    from agent_host_testing.formats import wire_format as wire_format
    from agent_host_testing.formats.gist import Gist as Gist, Offer as Offer
    from agent_host_testing.improvisation import Improviser as Improviser
    from agent_host_testing.script import (
        Answer as Answer,
        Call as Call,
        Failure as Failure,
        FailureKind as FailureKind,
        Finish as Finish,
        Part as Part,
        Picture as Picture,
        Raw as Raw,
        Reply as Reply,
        Search as Search,
        Text as Text,
        Thought as Thought,
        Tokens as Tokens,
        call as call,
        say as say,
    )
    from agent_host_testing.server import FakeServer as FakeServer
    from agent_host_testing.shapes import (
        SHAPES as SHAPES,
        Shape as Shape,
        check_shape as check_shape,
        shapes_for as shapes_for,
    )
    from agent_host_testing.suites.checking import check as check
    from agent_host_testing.suites.claims import not_claimed as not_claimed
    from agent_host_testing.suites.engine import BatchEngineConformance as BatchEngineConformance
    from agent_host_testing.suites.extension import ExtensionConformance as ExtensionConformance
    from agent_host_testing.suites.feature import FeatureConformance as FeatureConformance
    from agent_host_testing.suites.provider import ProviderConformance as ProviderConformance
    from agent_host_testing.suites.store import SessionStoreConformance as SessionStoreConformance
    from agent_host_testing.suites.tool import ToolConformance as ToolConformance
    from agent_host_testing.violations import Violation as Violation, require as require
    from agent_host_testing.wire import (
        Ledger as Ledger,
        Operation as Operation,
        Problem as Problem,
        Refusal as Refusal,
        Request as Request,
        WireFormat as WireFormat,
        pieces as pieces,
    )

#: Where each public name is defined; read by `__getattr__` on first use.
_MODULES = {
    "_version": ("__version__",),
    "faults": (
        "Drip",
        "Reset",
        "Split",
        "Stall",
        "Truncate",
        "WrongLength",
        "empty_body",
        "html_page",
        "overloaded",
        "plain_text",
        "rate_limited",
        "retry_headers",
    ),
    "formats": ("wire_format",),
    "formats.gist": ("Gist", "Offer"),
    "improvisation": ("Improviser",),
    "script": (
        "Answer",
        "Call",
        "Failure",
        "FailureKind",
        "Finish",
        "Part",
        "Picture",
        "Raw",
        "Reply",
        "Search",
        "Text",
        "Thought",
        "Tokens",
        "call",
        "say",
    ),
    "server": ("FakeServer",),
    "shapes": ("SHAPES", "Shape", "check_shape", "shapes_for"),
    "suites.checking": ("check",),
    "suites.claims": ("not_claimed",),
    "suites.engine": ("BatchEngineConformance",),
    "suites.extension": ("ExtensionConformance",),
    "suites.feature": ("FeatureConformance",),
    "suites.provider": ("ProviderConformance",),
    "suites.store": ("SessionStoreConformance",),
    "suites.tool": ("ToolConformance",),
    "violations": ("Violation", "require"),
    "wire": ("Ledger", "Operation", "Problem", "Refusal", "Request", "WireFormat", "pieces"),
}
_DEFINED_IN = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_DEFINED_IN)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    module = _DEFINED_IN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
