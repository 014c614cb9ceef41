"""Who published a file, as far as signed attestations (PEP 740) prove it.

An index offers attestations beside a file; whether they hold is for ``pypi-attestations`` to say,
which is optional and heavy. What nobody attests is never called verified. It must not know what
becomes of a publisher that has changed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from agent_hookspecs.errors import AgentError
from agent_hookspecs.values import dataclass
from agent_host.distributions.index_pages import FileFacts, find_facts
from agent_host.distributions.pins import Pin
from agent_host.distributions.web import Reader, open_reader
from agent_host.redaction import describe_error

__all__ = ["Attested", "check_attestations", "verify_published"]

_PACKAGE = "pypi_attestations"
_MAX_BYTES = 4 << 20
#: What says who a publisher is, in the order in which it is shown; the rest says from where in it.
_IDENTITY = (
    "kind",
    "repository",
    "vcs_origin",
    "project_id",
    "email",
    "workflow",
    "workflow_filepath",
    "pipeline_definition_id",
)


@dataclass(frozen=True, slots=True)
class Attested:
    """What is known of the publisher of a file.

    ``verified``: the attestations hold, and ``publisher`` signed them. ``absent``: the index offers
    none. ``failed``: they do not hold. ``unknown``: they could not be had.
    """

    distribution: str
    version: str
    state: Literal["verified", "absent", "failed", "unknown"]
    publisher: str = ""
    reason: str = ""


def verify_published(locked: Mapping[str, Pin], indexes: Sequence[str]) -> list[Attested]:
    """What is known of the publishers of all that is locked and that an index offers."""
    pins = [pin for pin in locked.values() if pin.is_on_index]
    with open_reader() as reader:
        return check_attestations(pins, find_facts(pins, indexes, reader), reader)


def check_attestations(
    pins: Iterable[Pin], facts: Mapping[str, FileFacts], reader: Reader
) -> list[Attested]:
    """What is known of the publishers of these files."""
    return [
        _check_file(pin, facts.get(pin.name, FileFacts(reason="no index was asked")), reader)
        for pin in pins
    ]


def _check_file(pin: Pin, facts: FileFacts, reader: Reader) -> Attested:
    if facts.reason:
        return Attested(pin.name, pin.version, "unknown", reason=facts.reason)
    if not facts.provenance:
        return Attested(pin.name, pin.version, "absent")
    try:
        document = reader.get(facts.provenance, {"accept": "application/json"}, _MAX_BYTES)
    except AgentError as error:
        return Attested(pin.name, pin.version, "unknown", reason=error.message)
    if document.status != 200:
        reason = f"the index answers with {document.status}"
        return Attested(pin.name, pin.version, "unknown", reason=reason)
    try:
        publisher = _verify(pin, document.raw)
    except Exception as error:
        # Whatever a stranger's attestation does to the library, it has not been verified.
        return Attested(pin.name, pin.version, "failed", reason=describe_error(error))
    return Attested(pin.name, pin.version, "verified", publisher)


def _verify(pin: Pin, raw: bytes) -> str:
    """The publishers of the file, all of whose attestations must hold."""
    library: Any = import_module(_PACKAGE)
    # It says at every call that it does without the network, which is what is asked of it.
    logging.getLogger("sigstore").setLevel(logging.ERROR)
    provenance = library.Provenance.model_validate_json(raw)
    name = unquote(os.path.basename(urlsplit(pin.url).path))
    file = library.Distribution(name=name, digest=pin.sha256)
    publishers = set()
    for bundle in provenance.attestation_bundles:
        for attestation in bundle.attestations:
            # With the keys that came with the library: what is verified must not depend on who
            # answers in the network.
            attestation.verify(bundle.publisher, file, offline=True)
            publishers.add(_describe_publisher(bundle.publisher.model_dump()))
    if not publishers:
        raise ValueError("there is no attestation in it")
    return " and ".join(sorted(publishers))


def _describe_publisher(about: Mapping[str, Any]) -> str:
    return " ".join(str(about[key]) for key in _IDENTITY if about.get(key))
