"""The pages of a catalog: one with everything, and one for each distribution.

They are whole without script; what a script adds is the search. All text that is not ours goes
through `catalog.markup`, and its direction is its own. It must not know how an index is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host.distributions.catalog_index import (
    INDEX_NAME,
    CatalogIndex,
    IndexedDistribution,
    IndexedPlugin,
    IndexedSetting,
    index_schema,
)
from agent_host.distributions.search import TIERS
from catalog.markup import SITE, Markup, element, fill, join

__all__ = ["write_site"]

_FILES = ("catalog.css", "catalog.js", "icon.svg")
#: So many plugins are shown open at once; of more, each is opened by whoever wants to see it.
_OPEN = 3


def write_site(index: CatalogIndex, folder: Path) -> None:
    """Write pages, index and schema into a folder."""
    pages = folder / "plugins"
    pages.mkdir(parents=True, exist_ok=True)
    document = json.dumps(index.model_dump(), indent=1, ensure_ascii=True) + "\n"
    _write(folder / INDEX_NAME, document)
    _write(folder / "index.schema.json", json.dumps(index_schema(), indent=1) + "\n")
    for name in _FILES:
        _write(folder / name, (SITE / name).read_text(encoding="utf-8"))
    _write(folder / "index.html", _home(index))
    known = {each.name for each in index.distributions}
    for each in index.distributions:
        _write(pages / f"{each.name}.html", _page(each, known, index))


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")


def _shell(index: CatalogIndex, *, title: str, summary: str, root: str, body: Markup) -> Markup:
    return fill(
        "page.html",
        title=title,
        summary=summary,
        root=root,
        catalog=index.title,
        made=f"Made on {index.made[:10]}" if index.made else "",
        body=body,
    )


def _home(index: CatalogIndex) -> Markup:
    distributions = index.distributions
    tags = sorted({tag for each in distributions for tag in each.tags()})
    tiers = {each.tier for each in distributions} - {""}
    body = fill(
        "home.html",
        title=index.title,
        lead=_count_words(distributions),
        total=str(len(distributions)),
        roles=join(*(_role_choice(role, role.title() + "s") for role in PLUGIN_ROLES)),
        tags=join(*(element("option", tag, value=tag) for tag in tags)),
        tiers=join(
            *(element("option", f"{t.title()} or higher", value=t) for t in TIERS if t in tiers)
        ),
        no_tiers=Markup("" if tiers else " hidden"),
        cards=join(*map(_card, distributions)),
    )
    return _shell(index, title=index.title, summary=_count_words(distributions), root="", body=body)


def _count_words(distributions: Iterable[IndexedDistribution]) -> str:
    found = [*distributions]
    plugins = sum(len(each.plugins) for each in found)
    return f"{plugins} plugins in {len(found)} distributions"


def _role_choice(role: str, label: str) -> Markup:
    return join(element("label", Markup(f'<input type="radio" name="role" value="{role}">'), label))


def _card(distribution: IndexedDistribution) -> Markup:
    link = element("a", distribution.name, href=f"plugins/{distribution.name}.html")
    return element(
        "li",
        element(
            "div",
            element("h2", link),
            element("span", distribution.version, class_="version", dir="auto"),
            class_="head",
        ),
        element("p", distribution.summary or "No summary.", dir="auto", class_="summary"),
        element("div", *_badges(distribution), class_="badges"),
        class_="card",
        data_search=_search_text(distribution),
        data_roles=" ".join(distribution.roles()),
        data_tags=json.dumps(distribution.tags()),
        data_tier=distribution.tier,
    )


def _badges(distribution: IndexedDistribution) -> Iterator[Markup]:
    for role in PLUGIN_ROLES:
        count = sum(each.role == role for each in distribution.plugins)
        if count:
            words = role if count == 1 else f"{count} {role}s"
            yield element("span", words, class_=f"badge role-{role}")
    if distribution.tier:
        yield element("span", f"{distribution.tier} tier", class_=f"badge tier-{distribution.tier}")
    if distribution.problems:
        yield element("span", "has problems", class_="badge problem")


def _search_text(distribution: IndexedDistribution) -> str:
    """All that a word may be found in, in small letters."""
    words = [distribution.name, distribution.summary, *distribution.keywords, *distribution.tags()]
    for plugin in distribution.plugins:
        words += [plugin.name, plugin.label, plugin.description, *plugin.tools, *plugin.commands]
    return " ".join(dict.fromkeys(" ".join(words).casefold().split()))


def _page(distribution: IndexedDistribution, known: set[str], index: CatalogIndex) -> Markup:
    is_open = len(distribution.plugins) <= _OPEN
    body = fill(
        "distribution.html",
        name=distribution.name,
        summary=distribution.summary,
        badges=join(*_badges(distribution)),
        command=f"agent-host plugins add {distribution.name}",
        problems=_problems(distribution),
        count=str(len(distribution.plugins)),
        plugins=join(*(_plugin(each, is_open=is_open) for each in distribution.plugins)),
        description=_description(distribution),
        facts=join(*_facts(distribution, known)),
    )
    return _shell(
        index,
        title=f"{distribution.name} · {index.title}",
        summary=distribution.summary,
        root="../",
        body=body,
    )


def _problems(distribution: IndexedDistribution) -> Markup:
    if not distribution.problems:
        return Markup("")
    found = [element("li", each, dir="auto") for each in distribution.problems]
    head = element("p", "The host would refuse a part of it:")
    return element("div", head, element("ul", *found), class_="warning")


def _description(distribution: IndexedDistribution) -> Markup:
    if not distribution.description:
        return Markup("")
    return element(
        "details",
        element("summary", element("h2", "Read me")),
        # Markdown is shown as it was written: to render a stranger's would be to trust it.
        element("div", distribution.description, class_="text", dir="auto"),
        class_="panel",
    )


def _facts(distribution: IndexedDistribution, known: set[str]) -> Iterator[Markup]:
    yield from _fact("Version", distribution.version)
    yield from _fact("Licence", distribution.licence or "not said")
    yield from _fact("Python", distribution.python or "not said")
    if distribution.pythons:
        yield from _fact("Made for", ", ".join(distribution.pythons))
    yield from _fact("Contract", distribution.contract or "not said")
    yield from _fact("Quality tier", distribution.tier_words or "nothing says")
    needs = [_needed(name, known) for name in distribution.needs]
    if needs:
        yield from _fact("Needs", element("ul", *(element("li", each) for each in needs)))
    links = [_link(each.label, each.url) for each in distribution.links]
    if links:
        yield from _fact("Links", element("ul", *(element("li", each) for each in links)))
    others = [version for version in distribution.versions if version != distribution.version]
    if others:
        yield from _fact("Other versions", ", ".join(others))
    yield from _fact("Wheel", element("code", distribution.wheel))
    yield from _fact("SHA-256", element("code", distribution.sha256))


def _fact(label: str, value: str) -> Iterator[Markup]:
    yield element("dt", label)
    yield element("dd", value, dir="auto")


def _needed(name: str, known: set[str]) -> str:
    return element("a", name, href=f"{name}.html") if name in known else name


def _link(label: str, url: str) -> Markup:
    """A link of the author's, with the server that it leads to in plain sight."""
    host = urlsplit(url).hostname or ""
    shown = element("a", label, href=url, rel="nofollow noopener noreferrer", dir="auto")
    return join(shown, " ", element("span", host, class_="host"))


def _plugin(plugin: IndexedPlugin, *, is_open: bool) -> Markup:
    role = plugin.role or "unknown role"
    head = element(
        "summary",
        element("h3", plugin.label or plugin.name, dir="auto"),
        element("span", role, class_=f"badge role-{plugin.role or 'unknown'}"),
        element("code", plugin.name),
        element("span", plugin.description, class_="about", dir="auto"),
    )
    parts = [*_notes(plugin), *_lists(plugin), *_settings(plugin)]
    return element(
        "details",
        head,
        element("div", *parts, class_="inside"),
        class_="panel plugin",
        id=f"{plugin.role or 'plugin'}-{_anchor(plugin.name)}",
        open=is_open,
    )


def _anchor(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)


def _notes(plugin: IndexedPlugin) -> Iterator[Markup]:
    notes = []
    if plugin.requires_api_key:
        notes.append("needs a key")
    if not plugin.default_enabled:
        notes.append("takes part only when it is enabled by name")
    if not plugin.role:
        notes.append("only its class knows its role and its settings")
    if notes:
        words = "; ".join(notes)
        yield element("p", f"{words[0].upper()}{words[1:]}.", class_="note")


def _lists(plugin: IndexedPlugin) -> Iterator[Markup]:
    rows: list[tuple[str, list[Markup]]] = [
        ("Provides", [_tag(tag) for tag in plugin.provides_tags]),
        ("Takes part with", [_tag(tag) for tag in plugin.required_tags]),
        ("Needs plugins", [element("code", each) for each in plugin.required_plugins]),
        ("Never with", [_tag(tag) for tag in plugin.forbidden_tags]),
        (
            "Tools",
            [
                join(element("code", name), " ", element("span", effect, class_="effect"))
                for name, effect in plugin.tools.items()
            ],
        ),
        ("Commands", [element("code", f"agent-host {each}") for each in plugin.commands]),
        ("Stores", [element("code", f"{each}:") for each in plugin.stores]),
        ("Hooks", [element("code", hook) for hook in plugin.hooks]),
        ("More hooks from", [element("code", each) for each in plugin.inherits]),
    ]
    shown = [(label, items) for label, items in rows if items]
    if shown:
        yield element(
            "dl",
            *(
                join(
                    element("dt", label),
                    element("dd", element("ul", *(element("li", item) for item in items))),
                )
                for label, items in shown
            ),
            class_="lists",
        )


def _tag(tag: str) -> Markup:
    """A tag, which leads to all that has it."""
    return element(
        "a", tag, href=f"../index.html?{urlencode({'tag': tag})}", class_="tag", dir="auto"
    )


def _settings(plugin: IndexedPlugin) -> Iterator[Markup]:
    if plugin.settings:
        yield element("h4", "Settings")
        rows = [part for each in plugin.settings for part in _setting(each)]
        yield element("dl", *rows, class_="settings")
    if plugin.settings_are_asked and plugin.role:
        yield element("p", "Some settings are known to its class alone.", class_="note")


def _setting(setting: IndexedSetting) -> Iterator[Markup]:
    facts = [setting.type]
    facts += ["required"] * setting.required
    facts += ["secret"] * setting.secret
    facts += [f"default {setting.default}"] * bool(setting.default)
    yield element(
        "dt",
        element("code", setting.key),
        " ",
        element("span", "; ".join(facts), class_="kind", dir="auto"),
    )
    choices = f"One of {', '.join(setting.choices)}." if setting.choices else ""
    words = " ".join(part for part in (setting.description, choices) if part)
    yield element("dd", words or "No description.", dir="auto")
