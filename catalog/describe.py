"""From wheels to the index of a catalog: what each distribution offers, in bounded plain text.

Text of packages is cut to what a reader can use, and characters that nobody sees, or that turn
text around, are shown by their numbers. It must not know what pages look like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import DescriptorError
from agent_hookspecs.logs import names_secret
from agent_host.cli.outside import clean_lines, clean_text
from agent_host.distributions.catalog_index import (
    IndexedDistribution,
    IndexedLink,
    IndexedPlugin,
    IndexedSetting,
    Tier,
)
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.descriptor import MAX_BYTES
from agent_host.plugins.inspect.about import About, about_metadata
from agent_host.plugins.inspect.conformance import (
    CONFORMANCE_NAME,
    decode_conformance,
    is_sealed,
    judge_package,
)
from agent_host.plugins.settings import Setting, merge_schemas
from agent_host.redaction import holds_secrets
from catalog.hooks import find_hooks
from catalog.wheels import Announced, Wheel

__all__ = ["describe_wheel", "join_versions"]

_LINE = 300
_PARAGRAPH = 2_000
_TEXT = 20_000
_MANY = 200
#: The characters that an address may have; all others are written as numbers there.
_ADDRESS = re.compile(r"[A-Za-z0-9:/?#\[\]@!$&'()*+,;=._~%-]+")
_RANKS: tuple[Tier, ...] = ("", "bronze", "silver", "gold")


def describe_wheel(wheel: Wheel) -> IndexedDistribution | None:
    """What a wheel offers; None if it announces no plugin."""
    announced = [*wheel.announced()]
    if not announced:
        return None
    headers, text = wheel.metadata()
    sound = [each for each in announced if each.descriptor is not None]
    descriptors = [each.descriptor for each in sound if each.descriptor is not None]
    about = about_metadata(headers, descriptors[0] if descriptors else None)
    about = replace(about, readme=text)
    standings = [_standing(wheel, each, about) for each in sound]
    contracts = dict.fromkeys(found.api for found in descriptors if found.api)
    return IndexedDistribution(
        name=canonical_name(wheel.name),
        version=str(wheel.version),
        versions=[str(wheel.version)],
        summary=_line(headers.get("Summary")),
        description=_text(text),
        description_type=_line(headers.get("Description-Content-Type")).partition(";")[0],
        licence=_line(about.license),
        python=_line(about.python),
        pythons=_words(about.pythons),
        contract=_line(" and ".join(contracts)),
        # What holds for all of it is what holds for the least of it.
        tier=min((tier for tier, _ in standings), key=_RANKS.index, default=""),
        tier_words=_line("; ".join(dict.fromkeys(words for _, words in standings if words))),
        needs=[*_needs(headers)],
        links=[*_links(headers, about)],
        keywords=_words(str(headers.get("Keywords") or "").replace(",", " ").split()),
        wheel=_line(wheel.path.name),
        sha256=wheel.sha256(),
        problems=[_paragraph(each.problem) for each in announced if each.problem],
        plugins=[
            _describe_entry(entry, wheel)
            for found in descriptors
            for entry in found.entries[:_MANY]
        ],
    )


def _standing(wheel: Wheel, announced: Announced, about: About) -> tuple[Tier, str]:
    """The tier that the results in a wheel show of its content, and what is to be said of it."""
    descriptor = announced.descriptor
    assert descriptor is not None
    claimed = f"{descriptor.tier} is claimed, and nothing proves it" if descriptor.tier else ""
    file = f"{announced.folder}/{CONFORMANCE_NAME}"
    raw = wheel.read(file, MAX_BYTES + 1) if announced.folder else None
    if raw is None:
        return "", claimed
    try:
        found = decode_conformance(raw, file)
    except DescriptorError as error:
        return "", error.message
    if not is_sealed(found):
        return "", f"{CONFORMANCE_NAME} is not as the kit wrote it"
    if wheel.digest_package(announced.folder) != found.files:
        return "", f"{CONFORMANCE_NAME} is of other files"
    folder: Any = wheel.folder_of(announced.folder)
    judged = judge_package(found, descriptor, about, folder)
    if judged.tier is None:
        return "", claimed or f"no tier: {judged.lacks[0]}"
    return judged.tier, f"{judged.tier}, of this content"


def join_versions(found: Iterable[IndexedDistribution]) -> list[IndexedDistribution]:
    """One of each name: the newest, stable before not, with the versions of all."""
    named: dict[str, list[IndexedDistribution]] = {}
    for each in found:
        named.setdefault(each.name, []).append(each)
    joined = []
    for _, same in sorted(named.items()):
        same.sort(key=lambda each: _age_key(each.version), reverse=True)
        versions = {version for each in same for version in each.versions}
        ordered = sorted(versions, key=Version, reverse=True)
        joined.append(same[0].model_copy(update={"versions": ordered[:_MANY]}))
    return joined


def _age_key(version: str) -> tuple[bool, Version]:
    parsed = Version(version)
    return not parsed.is_prerelease, parsed


def _describe_entry(entry: Entry, wheel: Wheel) -> IndexedPlugin:
    defined = find_hooks(entry, wheel.source_of)
    return IndexedPlugin(
        name=_line(entry.name or entry.entry),
        role=entry.role or "",
        label=_line(entry.label),
        description=_paragraph(entry.description),
        provides_tags=_words(entry.provides_tags),
        required_tags=_words(entry.required_tags),
        forbidden_tags=_words(entry.forbidden_tags),
        required_plugins=_words(entry.required_plugins),
        hooks=sorted(defined.hooks),
        inherits=_words(sorted(defined.inherits)),
        settings=[*_settings(entry)],
        settings_are_asked="get_config_schema" in entry.dynamic or entry.short,
        tools={_line(name): str(effect) for name, effect in [*entry.tools.items()][:_MANY]},
        commands=_words(entry.commands),
        stores=_words(entry.stores),
        default_enabled=entry.default_enabled,
        requires_api_key=entry.requires_api_key,
    )


def _settings(entry: Entry) -> Iterator[IndexedSetting]:
    settings = merge_schemas([(entry.name or "", entry.config_schema)]).settings
    for setting in [*settings.values()][:_MANY]:
        yield _describe_setting(setting)


def _describe_setting(setting: Setting) -> IndexedSetting:
    schema: Mapping[str, Any] = setting.schema
    is_secret = holds_secrets(schema) or names_secret(setting.key)
    wanted = schema.get("type")
    kinds = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    choices = schema.get("enum")
    shows_default = schema.get("default") is not None and not is_secret
    return IndexedSetting(
        key=_line(setting.key),
        type=_line(" or ".join(str(kind) for kind in kinds if kind) or "any"),
        required=setting.required,
        secret=is_secret,
        default=_json(schema["default"]) if shows_default else "",
        choices=[_json(each) for each in choices[:_MANY]] if isinstance(choices, list) else [],
        description=_paragraph(schema.get("description")),
    )


def _json(value: object) -> str:
    return _line(json.dumps(value, ensure_ascii=False, default=str))


def _needs(headers: Message) -> Iterator[str]:
    """The distributions that it needs and that are of our kind by their names."""
    names = set()
    for text in headers.get_all("Requires-Dist", []):
        try:
            requirement = Requirement(str(text))
        except InvalidRequirement:
            # Nothing is lost: an installer says what is wrong with it.
            continue
        if requirement.marker is None or "extra" not in str(requirement.marker):
            names.add(canonical_name(requirement.name))
    yield from (_line(name) for name in sorted(names) if name.startswith("agent-host-"))


def _links(headers: Message, about: About) -> Iterator[IndexedLink]:
    """Links that lead to web servers, those that people want first; a label may say anything."""
    found = {
        about.homepage: "Homepage",
        about.documentation: "Documentation",
        about.issues: "Issues",
    }
    for text in headers.get_all("Project-URL", []):
        label, _, url = str(text).partition(",")
        found.setdefault(url.strip(), label.strip())
    sound = [(label, url) for url, label in found.items() if _is_web_address(url)]
    for label, url in sound[:20]:
        yield IndexedLink(label=_line(label) or "Link", url=url)


def _is_web_address(url: str) -> bool:
    """Whether it is a plain address of a web server: no name of a user, and not too long."""
    try:
        parts = urlsplit(url)
    except ValueError:
        # Nothing is lost: what is no address is no link.
        return False
    return (
        parts.scheme in ("http", "https")
        and url.startswith(("http://", "https://"))
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and len(url) <= _PARAGRAPH
        and _ADDRESS.fullmatch(url) is not None
    )


def _line(text: object) -> str:
    return _cut(clean_text(str(text or "").strip()[: _LINE + 1]), _LINE)


def _paragraph(text: object) -> str:
    return _cut(clean_text(str(text or "").strip()[: _PARAGRAPH + 1]), _PARAGRAPH)


def _text(text: str) -> str:
    return _cut(clean_lines(text[: _TEXT + 1]), _TEXT)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _words(words: Iterable[object]) -> list[str]:
    return [_line(word) for word in [*words][:_MANY]]
