"""Every plugin gets a state with a reason, whatever order the bundles come in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.descriptor import Descriptor, Entry
from agent_hookspecs.errors import LoadError, UnknownPluginError
from agent_hookspecs.roles import PluginRole
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.catalog import (
    Catalog,
    LoaderSettings,
    PluginRecord,
    build_catalog,
    complete_catalog,
)
from agent_host.plugins.descriptor import parse_descriptor


def bundle(name: str, *entries: Any, api: str | None = None, **more: Any) -> Bundle:
    """A bundle of distribution ``dist-NAME`` whose entries are given as ``(role, name, keys)``."""
    listed = [
        entry
        if isinstance(entry, str)
        else {"entry": f"pkg.{name}:C", "role": entry[0], "name": entry[1], **dict(*entry[2:])}
        for entry in entries
    ]
    document = {"entries": listed, **({"api": api} if api else {})}
    known = {"distribution": f"dist-{name}", "file": f"/{name}", **more}
    return Bundle(name, "installed", f"pkg_{name}", descriptor=parse_descriptor(document), **known)


def states(catalog: Catalog) -> dict[str, str]:
    return {record.key: record.state for record in catalog}


def reason(catalog: Catalog, name: str) -> str:
    (record,) = [r for r in catalog if r.name == name]
    return record.reason


def test_a_plugin_nothing_speaks_against_is_discovered() -> None:
    catalog = build_catalog([bundle("one", ("tool", "t"), ("provider", "p"))])
    assert states(catalog) == {"provider:p": "discovered", "tool:t": "discovered"}
    assert [record.key for record in catalog] == ["provider:p", "tool:t"]


def test_denied_bundles_and_those_not_allowed_are_disabled() -> None:
    bundles = [bundle("one", ("tool", "a")), bundle("two", ("tool", "b"))]
    denied = build_catalog(bundles, LoaderSettings(deny=frozenset({"one"})))
    assert states(denied) == {"tool:a": "disabled", "tool:b": "discovered"}
    assert "bundle 'one' is denied" in reason(denied, "a")
    allowed = build_catalog(bundles, LoaderSettings(allow=frozenset({"one"})))
    assert states(allowed) == {"tool:a": "discovered", "tool:b": "disabled"}
    assert "not on the allow list" in reason(allowed, "b")
    assert states(build_catalog(bundles, LoaderSettings(allow=frozenset()))) == {
        "tool:a": "disabled",
        "tool:b": "disabled",
    }


def test_a_plugin_for_another_contract_is_incompatible() -> None:
    catalog = build_catalog([bundle("old", ("tool", "t"), api="<1")])
    assert states(catalog) == {"tool:t": "incompatible"}
    assert "made for contract <1" in reason(catalog, "t")
    assert "upgrade dist-old or the host" in reason(catalog, "t")


def test_a_bundle_that_cannot_be_read_is_one_failed_record() -> None:
    broken = Bundle("bad", "installed", "pkg", problem="it is broken (fix it)")
    catalog = build_catalog([broken, bundle("good", ("tool", "t"))])
    assert states(catalog) == {"tool:t": "discovered", "unknown:bad": "failed"}
    assert reason(catalog, "bad") == "it is broken (fix it)"


@pytest.mark.parametrize("role", ["provider", "extension", "feature", "tool"])
def test_two_plugins_of_one_name_and_role_are_refused_naming_both_owners(role: str) -> None:
    catalog = build_catalog([bundle("one", (role, "same")), bundle("two", (role, "same"))])
    assert [record.state for record in catalog] == ["failed", "failed"]
    for record in catalog:
        assert f"{role}:same is claimed by dist-one and by dist-two" in record.reason
        assert f'"{role}:same": "dist-one" under prefer_plugins' in record.reason


def test_one_name_in_two_roles_is_no_collision() -> None:
    catalog = build_catalog([bundle("one", ("tool", "same"), ("feature", "same"))])
    assert set(states(catalog).values()) == {"discovered"}


def test_a_preference_settles_a_collision() -> None:
    bundles = [bundle("one", ("tool", "same")), bundle("two", ("tool", "same"))]
    settings = LoaderSettings(prefer={"tool:same": "dist-two"})
    catalog = build_catalog(bundles, settings)
    found = {record.bundle.name: (record.state, record.reason) for record in catalog}
    assert found["two"] == ("discovered", "")
    assert found["one"] == ("failed", "dist-two is preferred for tool:same")


def test_a_preference_for_nobody_settles_nothing() -> None:
    bundles = [bundle("one", ("tool", "same")), bundle("two", ("tool", "same"))]
    catalog = build_catalog(bundles, LoaderSettings(prefer={"tool:same": "dist-three"}))
    assert [record.state for record in catalog] == ["failed", "failed"]


def test_a_name_registered_twice_by_one_package_is_refused() -> None:
    catalog = build_catalog([bundle("one", ("tool", "same"), ("tool", "same"))])
    assert {record.state for record in catalog} == {"failed"}
    assert {record.reason for record in catalog} == {
        "dist-one registers tool:same twice (rename one of them in its descriptor)"
    }
    preferred = build_catalog(
        [bundle("one", ("tool", "same"), ("tool", "same")), bundle("two", ("tool", "same"))],
        LoaderSettings(prefer={"tool:same": "dist-one"}),
    )
    assert "registers tool:same twice" in preferred.records[0].reason


def test_two_tools_of_one_wire_name_are_refused() -> None:
    bundles = [
        bundle("one", ("tool", "a", {"tools": {"read_file": "read"}})),
        bundle("two", ("tool", "b", {"tools": {"read_file": "read", "other": "read"}})),
    ]
    catalog = build_catalog(bundles)
    assert states(catalog) == {"tool:a": "failed", "tool:b": "failed"}
    assert "tool 'read_file' is claimed by dist-one and by dist-two" in reason(catalog, "a")
    settled = build_catalog(bundles, LoaderSettings(prefer={"tool-name:read_file": "dist-two"}))
    assert states(settled) == {"tool:a": "failed", "tool:b": "discovered"}


def test_two_distributions_with_one_bundle_name_are_refused_with_all_they_hold() -> None:
    first = bundle("same", ("tool", "a"), ("tool", "b"))
    second = bundle("same", ("tool", "c"), distribution="dist-other", file="/other")
    catalog = build_catalog([first, second])
    assert set(states(catalog).values()) == {"failed"}
    assert "bundle 'same' is claimed by dist-other and by dist-same" in reason(catalog, "a")
    settled = build_catalog([first, second], LoaderSettings(prefer={"bundle:same": "dist-same"}))
    assert states(settled) == {"tool:a": "discovered", "tool:b": "discovered", "tool:c": "failed"}


def test_disabling_one_of_two_rivals_ends_the_collision() -> None:
    bundles = [bundle("one", ("tool", "same")), bundle("two", ("tool", "same"))]
    catalog = build_catalog(bundles, LoaderSettings(deny=frozenset({"one"})))
    assert [(r.bundle.name, r.state) for r in catalog] == [
        ("one", "disabled"),
        ("two", "discovered"),
    ]


def test_an_installed_package_that_is_also_a_source_counts_once() -> None:
    installed = bundle("one", ("tool", "t"))
    source = replace(installed, origin="path", source="path:x", distribution="")
    catalog = build_catalog([source, installed])
    assert [record.bundle.origin for record in catalog] == ["installed"]


def test_a_constraint_across_roles_is_refused() -> None:
    catalog = build_catalog(
        [bundle("one", ("extension", "e", {"after": ["f"]}), ("feature", "f"), ("tool", "t"))]
    )
    assert states(catalog)["extension:e"] == "failed"
    assert "within role extension, but it names 'f' (feature)" in reason(catalog, "e")


def test_a_constraint_on_a_name_that_both_roles_have_is_fine() -> None:
    catalog = build_catalog(
        [bundle("one", ("extension", "e", {"after": ["f"]}), ("feature", "f"), ("extension", "f"))]
    )
    assert set(states(catalog).values()) == {"discovered"}


def test_an_unknown_provider_is_refused_with_names_near_it() -> None:
    catalog = build_catalog([bundle("one", ("provider", "alpha"), ("provider", "beta"))])
    assert catalog.provider("beta").name == "beta"
    with pytest.raises(UnknownPluginError, match="no provider 'alhpa'") as caught:
        catalog.provider("alhpa")
    assert caught.value.hint == "did you mean 'alpha'?"
    with pytest.raises(UnknownPluginError) as caught:
        catalog.provider("zzz")
    assert caught.value.hint == "there are: alpha, beta"


def test_without_a_name_the_fallback_or_the_only_provider_is_meant() -> None:
    fallback = ("provider", "f", {"fallback": True})
    assert build_catalog([bundle("a", ("provider", "p"), fallback)]).provider(None).name == "f"
    assert build_catalog([bundle("a", ("provider", "p"))]).provider(None).name == "p"
    with pytest.raises(UnknownPluginError, match="there is no fallback") as caught:
        build_catalog([bundle("a", ("provider", "p"), ("provider", "q"))]).provider(None)
    assert caught.value.hint == "name one of: p, q"
    two = build_catalog([bundle("a", fallback, ("provider", "g", {"fallback": True}))])
    with pytest.raises(UnknownPluginError, match="several say they are the fallback"):
        two.provider(None)
    with pytest.raises(UnknownPluginError, match="no fallback") as caught:
        build_catalog([]).provider(None)
    assert "none is installed" in caught.value.hint


def test_a_provider_that_cannot_be_used_says_why() -> None:
    catalog = build_catalog(
        [bundle("one", ("provider", "p"))], LoaderSettings(deny=frozenset({"one"}))
    )
    with pytest.raises(
        UnknownPluginError, match="'p' is disabled: bundle 'one' is denied"
    ) as caught:
        catalog.provider("p")
    assert "doctor" in caught.value.hint


def test_a_plugin_goes_by_id_key_bundle_and_distribution() -> None:
    catalog = build_catalog([bundle("one", ("tool", "t"))])
    for name in ("t", "tool:t", "one", "dist-one"):
        assert [record.name for record in catalog.find(name)] == ["t"]
    assert catalog.find("else") == []


def test_short_forms_are_known_by_their_path_until_they_are_identified() -> None:
    catalog = build_catalog([bundle("one", "pkg.mod:A"), bundle("two", ("tool", "taken"))])
    (short,) = [record for record in catalog if not record.described]
    assert (short.name, short.role, short.key) == ("pkg.mod:A", None, "unknown:pkg.mod:A")

    def identify(record: PluginRecord) -> Entry:
        return Entry("pkg.mod:A", role="tool", name="taken")

    found = complete_catalog(catalog, identify)
    assert [record.state for record in found] == ["failed", "failed"], "they collide now"
    assert build_catalog([]).records == ()


def test_a_short_form_that_cannot_be_identified_has_failed() -> None:
    def identify(record: PluginRecord) -> Entry:
        raise LoadError("import failed", hint="repair it")

    catalog = complete_catalog(build_catalog([bundle("one", "pkg.mod:A")]), identify)
    assert reason(catalog, "pkg.mod:A") == "import failed (repair it)"


names = st.sampled_from(["a", "b", "c"])
roles: st.SearchStrategy[PluginRole] = st.sampled_from(["provider", "extension", "tool"])


@st.composite
def bundle_sets(draw: st.DrawFn) -> list[Bundle]:
    made = []
    for number in range(draw(st.integers(0, 6))):
        entries = tuple(
            Entry(
                f"pkg{number}:C{place}",
                draw(roles),
                draw(names),
                after=(draw(names),),
                tools={draw(names): "read"} if draw(st.booleans()) else {},
            )
            for place in range(draw(st.integers(1, 2)))
        )
        made.append(
            Bundle(
                draw(names),
                draw(st.sampled_from(["installed", "path"])),
                f"source{number}",
                distribution=f"dist{number}",
                file=f"/{draw(st.integers(0, 4))}",
                descriptor=Descriptor(entries, api=draw(st.sampled_from([None, ">=1", "<1"]))),
            )
            if draw(st.integers(0, 4))
            else Bundle(draw(names), "installed", f"source{number}", problem="broken")
        )
    return made


@given(
    bundle_sets().flatmap(lambda b: st.tuples(st.just(b), st.permutations(b))),
    st.builds(
        LoaderSettings,
        deny=st.frozensets(names, max_size=1),
        allow=st.none() | st.frozensets(names, min_size=2),
        prefer=st.dictionaries(
            st.sampled_from(["tool:a", "bundle:a", "tool-name:b"]),
            st.sampled_from(["dist0", "dist1"]),
        ),
    ),
)
def test_the_order_of_discovery_makes_no_difference(
    both: tuple[list[Bundle], list[Bundle]], settings: LoaderSettings
) -> None:
    first, second = (build_catalog(bundles, settings) for bundles in both)
    assert first == second
    usable = [record.key for record in first if record.usable]
    assert len(usable) == len(set(usable)), "no two usable plugins share a name"
    assert all(record.reason for record in first if not record.usable)
