"""What is known of models: rows of data in a package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent_hookspecs.authoring import facts_about, load_facts, selected_model

ROWS = (
    {"match": "acme-2-mini*", "size": "small"},
    {"match": ["acme-2*", "other/acme-2*"], "size": "large"},
)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("acme-2-mini-0401", "small"),
        ("acme-2", "large"),
        ("other/acme-2-pro", "large"),
        ("ACME-2", "large"),
        ("acme-3", None),
        ("", None),
        (None, None),
    ],
)
def test_the_first_row_that_fits_counts(model: object, size: str | None) -> None:
    assert facts_about(model, ROWS).get("size") == size


def test_facts_are_read_from_a_package_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "facts_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "models.json").write_text('[{"match": "*", "tags": ["supports_tools"]}]')
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        rows = load_facts("facts_of_a_test")
        assert rows == ({"match": "*", "tags": ["supports_tools"]},)
        assert load_facts("facts_of_a_test") is rows
    finally:
        sys.modules.pop("facts_of_a_test", None)


def test_the_selected_model_is_found_by_its_id() -> None:
    models = [{"id": "a"}, {"id": "b", "name": "B"}]
    assert selected_model({"model": "b"}, models) == {"id": "b", "name": "B"}  # type: ignore[arg-type]
    assert selected_model({"model": "c"}, models) is None  # type: ignore[arg-type]
    assert selected_model({}, models) is None  # type: ignore[arg-type]
