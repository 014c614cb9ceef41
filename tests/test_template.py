"""The template for plugin packages: whatever the answers, what is made of them is sound."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs.errors import AgentError
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.template import Template
from making import run_host

cookiecutter: Any = pytest.importorskip("cookiecutter.main").cookiecutter
FailedHook = importlib.import_module("cookiecutter.exceptions").FailedHookException
tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

KINDS = (
    "openai-compatible",
    "custom-format",
    "extension",
    "feature",
    "tool",
    "feature-tool",
    "store",
    "mix",
)
ROLES = {
    "openai-compatible": ["provider"],
    "custom-format": ["provider", "extension", "extension"],
    "extension": ["extension"],
    "feature": ["feature"],
    "tool": ["tool"],
    "feature-tool": ["feature", "tool"],
    "store": ["feature"],
    "mix": ["provider", "extension", "tool"],
}
NASTY = 'It\'s "quoted", \\n back\\slashed, 100 % <b>&amp;</b> {x} #1 ünï 👋 ${{'[:-3]


def answers(**more: Any) -> dict[str, Any]:
    """Answers to every question, by default the least that is allowed."""
    template = Template()
    found: dict[str, Any] = {}
    for question in template.questions:
        found[question.key] = more.get(question.key, template.default(question, found))
    return found


def baked(folder: Path, **more: Any) -> Path:
    return Template().bake(answers(**more), folder)


def project(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    return document


def descriptor(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("src/*/agent_plugin.json")
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return document


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for file in sorted(folder.rglob("*")):
        # Other tests import what was made.
        if file.is_file() and "__pycache__" not in file.parts:
            yield file, file.read_text("utf-8")


def loaded(name: str) -> ModuleType:
    """A script of the template or of the tooling as a module."""
    file = Path(__file__).parent.parent / name
    if not file.exists():
        pytest.skip(f"{name} is in a checkout only")
    sys.path.insert(0, str(file.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"loaded_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A package of each kind, with answers that are as awkward as they may be."""
    folder = tmp_path_factory.mktemp("baked")
    return {
        kind: baked(
            folder,
            kind=kind,
            name=f"{NASTY[:40]} {kind}",
            plugin_id=f"a-very-long_id-{number:0>9}",
            distribution=f"Some.Distribution_with-a-Name-of-{number:0>7}",
            package=f"some_package_with_a_name_of_forty_{number:0>6}",
            description=NASTY,
            author=NASTY,
            email="o'brien+plugins@example.co.uk",
            licence=("MIT", "Apache-2.0", "BSD-3-Clause", "Proprietary")[number % 4],
            python=("3.10", "3.11", "3.12", "3.13")[number % 4],
            docs=bool(number % 2),
        )
        for number, kind in enumerate(KINDS)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_template_is_left(projects: dict[str, Path], kind: str) -> None:
    folder = projects[kind]
    assert not (folder / "parts").exists()
    for file, text in texts(folder):
        assert "cookiecutter" not in text, file
        assert not re.search(r"(?<!\$){{|{%", text), file
        assert text == "" or (text.endswith("\n") and not text.endswith("\n\n")), file


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_is_well_formed(projects: dict[str, Path], kind: str) -> None:
    for file, text in texts(projects[kind]):
        if file.suffix == ".py":
            ast.parse(text, str(file))
        elif file.suffix == ".json":
            json.loads(text)
        elif file.suffix == ".toml":
            tomllib.loads(text)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_in_words_arrive_unchanged(projects: dict[str, Path], kind: str) -> None:
    about = project(projects[kind])["project"]
    assert about["description"] == NASTY
    assert about["authors"] == [{"name": NASTY, "email": "o'brien+plugins@example.co.uk"}]
    first = descriptor(projects[kind])["entries"][0]
    assert first["description"] == NASTY
    assert first["label"] == f"{NASTY[:40]} {kind}"
    assert NASTY in (projects[kind] / "README.md").read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_descriptor_is_in_full_form(projects: dict[str, Path], kind: str) -> None:
    described = descriptor(projects[kind])
    entries = parse_descriptor(described).entries
    assert [entry.role for entry in entries] == ROLES[kind]
    assert not any(entry.short for entry in entries)
    assert len({(entry.role, entry.name) for entry in entries}) == len(entries)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_is_fit_to_be_published(projects: dict[str, Path], kind: str) -> None:
    if kind in ("openai-compatible", "mix"):
        # Their provider is built on it.
        pytest.importorskip("agent_host_openai_compatible")
    run = run_host("plugins", "validate", "--strict", str(projects[kind]))
    assert run.code == 0, run.out + run.err


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_is_in_good_style_with_long_names(projects: dict[str, Path], kind: str) -> None:
    check_style(projects[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_is_in_good_style_with_short_names(tmp_path: Path, kind: str) -> None:
    short = {"name": "A", "plugin_id": "a", "distribution": "ab", "package": "a"}
    check_style(baked(tmp_path, kind=kind, **short))


def check_style(folder: Path) -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("there is no ruff")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [ruff, *command, "--no-cache", "."], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_tests(projects: dict[str, Path], kind: str) -> None:
    names = {file.name for file in (projects[kind] / "tests").iterdir()}
    provider = kind in ("openai-compatible", "custom-format", "mix")
    integration = {
        f"test_provider_integration_{what}.py"
        for what in ("basic", "reasoning", "tools", "tools_reasoning", "usage")
    }
    assert "test_conformance.py" in names
    assert (integration <= names) is provider
    assert ("test_provider_skeleton_unit.py" in names) is provider
    assert ("test_extension_patterns_unit.py" in names) is (kind in ("extension", "mix"))
    assert ("test_tool_unit.py" in names) is (kind in ("tool", "mix"))
    end_to_end = "test_agent_application_integration_tools_e2e.py"
    assert (end_to_end in names) is (provider or kind == "tool")


@pytest.mark.parametrize("kind", KINDS)
def test_the_oldest_python_is_the_same_everywhere(projects: dict[str, Path], kind: str) -> None:
    folder, oldest = projects[kind], ("3.10", "3.11", "3.12", "3.13")[KINDS.index(kind) % 4]
    document = project(folder)
    assert document["project"]["requires-python"] == f">={oldest}"
    assert document["tool"]["mypy"]["python_version"] == oldest
    assert document["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    classifiers = " ".join(document["project"]["classifiers"])
    listed = re.findall(r":: (3\.\d+)", classifiers)
    assert (listed[0], listed[-1]) == (oldest, "3.13")
    environments = re.findall(r"py3\d+", (folder / "tox.ini").read_text("utf-8"))
    assert environments == [f"py{python.replace('.', '')}" for python in listed]
    assert f'"{oldest}"' in (folder / ".github/workflows/ci.yml").read_text("utf-8")


@pytest.mark.parametrize(
    ("licence", "words", "expression"),
    [
        ("MIT", "Permission is hereby granted", "MIT"),
        ("Apache-2.0", "Apache License", "Apache-2.0"),
        ("BSD-3-Clause", "Redistribution and use", "BSD-3-Clause"),
        ("Proprietary", "All rights reserved", "LicenseRef-Proprietary"),
    ],
)
def test_the_licence_is_the_chosen_one(
    tmp_path: Path, licence: str, words: str, expression: str
) -> None:
    folder = baked(tmp_path, kind="feature", name="Some", licence=licence, author="Ada O'Byte")
    text = (folder / "LICENSE").read_text("utf-8")
    assert words in text
    assert ("Ada O'Byte" in text) is (licence != "Apache-2.0")
    about = project(folder)["project"]
    assert about["license"] == expression
    private = "Private :: Do Not Upload" in about["classifiers"]
    assert private is (licence == "Proprietary")


def test_docs_are_there_if_wanted(projects: dict[str, Path]) -> None:
    wanted = {kind: (folder / "docs" / "index.md").exists() for kind, folder in projects.items()}
    assert wanted == {kind: bool(number % 2) for number, kind in enumerate(KINDS)}


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "),
    min_size=1,
    max_size=60,
).filter(lambda text: text.strip() and not re.search(r"{[{%#]", text))


@settings(max_examples=10, deadline=None)
@given(name=WORDS, description=WORDS, author=WORDS)
def test_any_words_will_do(name: str, description: str, author: str) -> None:
    with TemporaryDirectory() as folder:
        made = baked(
            Path(folder),
            kind="feature",
            plugin_id="some-words",
            name=name,
            description=description,
            author=author,
            # Or git's would stand there.
            email="",
        )
        about = project(made)["project"]
        assert about["description"] == description
        assert about["authors"] == [{"name": author}]
        (entry,) = descriptor(made)["entries"]
        assert (entry["label"], entry["description"]) == (name, description)


BAD = [
    ({"name": " "}, "name is empty"),
    ({"name": "two\nlines"}, "line break"),
    ({"name": "x" * 61}, "at most 60"),
    ({"description": "nul \0"}, "cannot be shown"),
    ({"author": ""}, "author is empty"),
    ({"plugin_id": ""}, "lower-case words"),
    ({"plugin_id": "Upper"}, "lower-case words"),
    ({"plugin_id": "1st"}, "begin with a letter"),
    ({"plugin_id": "a/b"}, "lower-case words"),
    ({"plugin_id": "x" * 25}, "at most 24"),
    ({"plugin_id": "echo"}, "taken by an installed plugin"),
    ({"plugin_id": "echo-reasoning"}, "taken by an installed plugin"),
    ({"plugin_id": "sqlite", "kind": "store"}, "the host's own"),
    ({"distribution": "../../outside"}, "no name that pip knows"),
    ({"distribution": "-x"}, "no name that pip knows"),
    ({"distribution": "pluggy"}, "installed here already"),
    ({"plugin_id": "echo_reasoning"}, "taken by an installed plugin"),
    ({"package": "tests"}, "a module of its own tests"),
    ({"package": "test_conformance"}, "a module of its own tests"),
    ({"package": "json"}, "standard library"),
    ({"package": "pluggy"}, "would shadow a package"),
    ({"package": "agent_host"}, "would shadow a package"),
    ({"package": "class"}, "no lower-case name"),
    ({"package": "with-dash"}, "no lower-case name"),
    ({"email": "nobody"}, "no address"),
    ({"email": 'a"b@c.org>'}, "no address"),
]


@pytest.mark.parametrize(("bad", "said"), BAD)
def test_a_bad_answer_is_refused_with_one_sentence(bad: dict[str, str], said: str) -> None:
    wrong = Template().problems(answers(kind="tool", plugin_id="good") | bad)
    assert len(wrong) == 1
    assert said in wrong[0]
    assert next(iter(bad)) in wrong[0]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"kind": ""}, "kind is missing; choose one of"),
        ({"kind": "toll"}, "kind is 'toll'; choose one of"),
        ({"licence": "GPL"}, "licence is 'GPL'"),
        ({"python": "2.7"}, "python is '2.7'"),
        ({"description": "a {{ trap }}"}, "instruction of the template"),
    ],
)
def test_what_cookiecutter_would_stumble_over_is_refused_too(
    bad: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(AgentError, match=re.escape(said)):
        Template().bake(answers(kind="tool", plugin_id="good") | bad, tmp_path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("bad", [BAD[1][0], BAD[6][0], BAD[10][0], BAD[12][0], BAD[15][0]])
def test_plain_cookiecutter_refuses_the_same_and_keeps_nothing(
    bad: dict[str, str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    output = tmp_path / "a" / "b" / "c"
    output.mkdir(parents=True)
    given = answers(kind="tool", plugin_id="good") | bad
    with pytest.raises(FailedHook):
        cookiecutter(
            str(Template().folder), no_input=True, extra_context=given, output_dir=str(output)
        )
    (sentence,) = re.findall("error: (.*)", capfd.readouterr().err)
    assert [sentence] == Template().problems(given)
    assert [path.name for path in (tmp_path / "a").rglob("*")] == ["b", "c"]


def test_plain_cookiecutter_makes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    given = answers(kind="mix", name="Some", plugin_id="some-mix")
    ours = Template().bake(given, tmp_path / "ours")
    theirs = Path(
        cookiecutter(
            str(Template().folder),
            no_input=True,
            extra_context=given,
            output_dir=str(tmp_path / "theirs"),
        )
    )
    made = [{file.relative_to(each): text for file, text in texts(each)} for each in (ours, theirs)]
    assert made[0] == made[1]


def test_the_rules_need_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Template().rules
    assert {"echo", "echo_reasoning"} <= rules.taken_names()
    monkeypatch.setitem(sys.modules, "agent_host.plugins.load", None)
    assert rules.taken_names() == set()


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_that_are_checked_are_those_that_are_made(
    projects: dict[str, Path], kind: str
) -> None:
    described = parse_descriptor(descriptor(projects[kind]))
    made = {name for entry in described.entries for name in (entry.name, *entry.tools)}
    plugin_id = described.entries[0].name
    assert plugin_id is not None
    assert set(Template().rules.names_of(kind, plugin_id)) == made


@pytest.mark.parametrize(
    ("kind", "plugin_id", "taken"),
    [
        ("custom-format", "chat", "chat_tools"),
        ("custom-format", "my-own", "my_own_reasoning"),
        ("tool", "rev", "rev_convert"),
        ("mix", "rev", "rev-citations"),
        ("feature", "rev_to", "rev-to"),
        ("store", "rev_to", "rev-to"),
    ],
)
def test_an_id_that_makes_a_taken_name_is_refused(kind: str, plugin_id: str, taken: str) -> None:
    given = answers(kind=kind, name="Good") | {"plugin_id": plugin_id}
    (sentence,) = Template().rules.problems(given, {taken})
    assert "taken by an installed plugin" in sentence
    assert Template().rules.problems(given, {f"{taken}_too"}) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_package_can_be_called_as_a_module_of_its_tests(
    projects: dict[str, Path], kind: str
) -> None:
    for file in (projects[kind] / "tests").glob("*.py"):
        (sentence,) = Template().problems({"package": file.stem}, only=["package"])
        assert "a module of its own tests" in sentence


def test_what_follows_from_a_bad_id_is_not_told_too() -> None:
    wrong = Template().problems(answers(kind="tool", name="1st"))
    assert len(wrong) == 1
    assert wrong[0].startswith("plugin_id '1st'")


def test_a_package_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Path, target: Path) -> Path:
        assert (self / "pyproject.toml").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        baked(tmp_path, kind="tool", name="Some")
    assert [*tmp_path.iterdir()] == []


def test_a_disk_that_is_full_is_told_and_nothing_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(AgentError, match="No space left") as refused:
        baked(tmp_path / "new" / "folder", kind="tool", name="Some")
    assert "nothing was kept" in refused.value.explain()
    assert not [*tmp_path.rglob("agent-host-some")]


def test_what_is_there_already_stays_as_it_is(tmp_path: Path) -> None:
    kept = tmp_path / "agent-host-some" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("mine", encoding="utf-8")
    with pytest.raises(AgentError, match="is there already"):
        baked(tmp_path, kind="tool", name="Some")
    assert [path.name for path in kept.parent.iterdir()] == ["kept.txt"]


def test_nothing_is_written_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "made" / "home"))
    baked(tmp_path / "made", kind="tool", name="Some")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_what_installers_compile_of_the_template_is_not_copied(tmp_path: Path) -> None:
    copy = tmp_path / "template"
    shutil.copytree(Template().folder, copy)
    (tests,) = copy.glob("*/parts/tool/tests")
    (tests / "__pycache__").mkdir()
    (tests / "__pycache__" / "test_tool_unit.cpython-311.pyc").write_bytes(b"\0\1\2")
    folder = Template(copy).bake(answers(kind="tool", name="Some"), tmp_path)
    assert not [*folder.rglob("__pycache__")]
    assert (folder / "tests" / "test_tool_unit.py").exists()


def test_questions_rules_and_parts_agree() -> None:
    template = Template()
    choices = {each.key: tuple(each.choices) for each in template.questions if each.choices}
    rules = template.rules
    assert choices == {"kind": rules.KINDS, "licence": rules.LICENCES, "python": rules.PYTHONS}
    assert choices["kind"] == KINDS
    for question in template.questions:
        assert template.problems({question.key: "\n"}, only=[question.key]) or (
            question.key == "docs"
        )


def test_every_part_belongs_to_a_kind() -> None:
    parts = loaded("template-python-provider/hooks/post_gen_project.py").PARTS
    assert tuple(parts) == KINDS
    (folder,) = Template().folder.glob("*/parts")
    licences = {f"licence-{licence}" for licence in Template().rules.LICENCES}
    used = {part for each in parts.values() for part in each} | licences | {"docs"}
    assert {part.name for part in folder.iterdir()} == used


def test_every_kind_is_tried_out() -> None:
    assert loaded(".ci/bake.py").KINDS == KINDS


@pytest.fixture
def git_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    file = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.chdir(tmp_path)
    return file


def test_the_author_is_the_one_that_git_knows(git_config: Path, tmp_path: Path) -> None:
    assert answers(name="Some")["author"] == "Your Name"
    git_config.write_text("[user]\n name = Ada Byte\n email = ada@example.org\n", "utf-8")
    found = answers(name="Some")
    assert (found["author"], found["email"]) == ("Ada Byte", "ada@example.org")
    git_config.write_text("[user]\n name = Ada {{ Byte\n email = nowhere\n", "utf-8")
    found = answers(name="Some")
    assert (found["author"], found["email"]) == ("Your Name", "")


def test_plain_cookiecutter_suggests_the_author_and_says_what_comes_next(
    git_config: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git_config.write_text("[user]\n name = Ada Byte\n", "utf-8")
    given = {"name": "Plain One", "kind": "feature"}
    folder = cookiecutter(
        str(Template().folder), no_input=True, extra_context=given, output_dir=str(tmp_path)
    )
    assert project(Path(folder))["project"]["authors"][0]["name"] == "Ada Byte"
    install = "python -m pip install" if importlib.util.find_spec("pip") else "uv pip install"
    assert f"cd {folder} && {install} -e" in capfd.readouterr().out


def test_the_host_says_by_itself_what_comes_next(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    baked(tmp_path, kind="feature", name="Some")
    assert capfd.readouterr().out == ""
