"""The matrix for released plugins: what is tried, what its ends mean, and what is written of it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_host.distributions.errors import DistributionError
from agent_host.distributions.matrix.cells import (
    Cell,
    Outcome,
    Release,
    choose_versions,
    plan_cells,
)
from agent_host.distributions.matrix.releases import Releases, unpack_tests
from agent_host.distributions.matrix.reports import (
    render_junit,
    render_matrix_page,
    to_document,
)
from agent_host.distributions.matrix.trials import read_refusal
from indexes import Index, make_wheel, pack_distributions, serve_index
from making import Run

pytest.importorskip("tox", reason="needs tox: pip install tox")

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def release(**more: object) -> Release:
    values: dict[str, object] = {
        "python": ">=3.10,<3.13",
        "requires": ("agent-hookspecs>=0.2", "nothing; extra == 'test'"),
        "extras": ("test",),
        "plugins": (("acme", "tool", "acme"),),
    }
    return Release("acme", "1.0", **(values | more))  # type: ignore[arg-type]


# What is tried ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "versions"),
    [
        (["oldest", "newest"], ["0.9", "0.10"]),
        (["newest", "newest"], ["0.10"]),
        (["0.9", "oldest"], ["0.9"]),
        (["1.0rc1"], ["1.0rc1"]),
    ],
)
def test_words_become_versions_each_once(words: list[str], versions: list[str]) -> None:
    assert choose_versions("x", words, ["0.10", "1.0rc1", "0.9"]) == versions


@pytest.mark.parametrize(("word", "released"), [("0.5", ["0.9"]), ("newest", [])])
def test_a_version_that_is_not_released_is_refused_with_those_that_are(
    word: str, released: list[str]
) -> None:
    with pytest.raises(DistributionError) as caught:
        choose_versions("x", [word], released)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("python", "contract", "said"),
    [
        ("3.10", "0.2", ""),
        ("3.12", "0.3", ""),
        ("3.13", "0.2", "needs Python"),
        ("3.9", "0.2", "needs Python"),
        ("3.10", "0.1", "needs agent-hookspecs>=0.2, this is 0.1"),
    ],
)
def test_what_the_metadata_rule_out_is_not_even_tried(
    python: str, contract: str, said: str
) -> None:
    (cell,) = plan_cells([release()], [python], ["1.0"], [contract])
    assert said in cell.find_misfit()
    assert bool(said) == bool(cell.find_misfit())


def test_what_a_folder_has_is_taken_from_nowhere_else(tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(tmp_path, "acme-one", version)
    wheel = make_wheel(tmp_path, "acme-two")
    found = Releases(tmp_path / "work", find_links=[str(tmp_path)], index_url="http://127.0.0.1:9")
    assert sorted(found.find_versions("acme.one")) == ["1.0", "2.0"]
    assert found.fetch("acme-one<2").version == "1.0"
    assert found.fetch("acme-two").plugins == (("acme_two", "feature", "acme-two"),)
    one = (tmp_path / "acme_one-1.0-py3-none-any.whl").as_uri()
    assert found.pin_local({"acme-one": "1.0"}) == [
        f"acme-one @ {one}",
        f"acme-two @ {wheel.as_uri()}",
    ]


def make_sdist(file: Path, contents: Mapping[str, str]) -> Path:
    with tarfile.open(file, "w:gz") as archive:
        for path, text in contents.items():
            about = tarfile.TarInfo(path)
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
    return file


def test_of_an_sdist_the_tests_are_taken_and_nothing_that_leads_out(tmp_path: Path) -> None:
    contents = {
        "acme-1.0/src/acme/__init__.py": "",
        "acme-1.0/acme/plugin.py": "",
        "acme-1.0/tests/test_it.py": "",
        "acme-1.0/tests/../../../outside.py": "",
        "acme-1.0/pyproject.toml": "",
        "acme-1.0/README.md": "",
        "acme-1.0/conftest.py": "",
        "acme-1.0/setup.py": "",
    }
    sdist = make_sdist(tmp_path / "acme-1.0.tar.gz", contents)
    folder = tmp_path / "deep" / "deeper" / "own"
    assert unpack_tests(sdist, folder)
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    assert found == ["README.md", "conftest.py", "pyproject.toml", "tests/test_it.py"]
    assert not [*tmp_path.rglob("outside.py")]
    bare = make_sdist(tmp_path / "bare.tar.gz", {"acme-1.0/pyproject.toml": ""})
    assert not unpack_tests(bare, tmp_path / "none")


@pytest.mark.parametrize(
    ("log", "status", "reason"),
    [
        (
            "ERROR: Cannot install a and b\nThe conflict is caused by:\n    a depends on c<2\n"
            "    b depends on c>=2\n\nERROR: ResolutionImpossible\n",
            "does not fit",
            "a depends on c<2; b depends on c>=2",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement c>=2 "
            "(from versions: 1.0)\nERROR: No matching distribution found for c>=2\n",
            "does not fit",
            "Could not find a version that satisfies the requirement c>=2 (from versions: 1.0)",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement c "
            "(from versions: none)\nERROR: No matching distribution found for c\n",
            "not tested",
            "no index has c",
        ),
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
            "ERROR: No matching distribution found for c\n",
            "not tested",
            "an index was not reached",
        ),
        ("", "not tested", "the environment could not be made"),
    ],
)
def test_the_end_of_an_installation_is_read_from_what_pip_said(
    log: str, status: str, reason: str
) -> None:
    found = read_refusal(CELL, log)
    assert found.status == status
    assert found.reason.startswith(reason)


# What is written --------------------------------------------------------------------------------

CELL = Cell(release(), "3.10", "1.0", "0.2")
OUTCOMES = [
    Outcome(CELL, "passed", counts=(5, 0, 1), seconds=2.5, notes=("no sdist",)),
    Outcome(Cell(release(), "3.11", "1.0", "0.2"), "failed", "test <b>x</b> & \x00", log="\x1b<i>"),
    Outcome(Cell(release(), "3.13", "1.0", "0.2"), "does not fit", "needs Python <3.13"),
    Outcome(Cell(release(), "3.12", "1.0", "0.2"), "not tested", "there is no Python 3.12"),
]


def test_junit_tells_the_four_ends_apart() -> None:
    suite = ElementTree.fromstring(render_junit(OUTCOMES))
    assert suite.attrib.items() >= {"tests": "4", "failures": "1", "errors": "1"}.items()
    assert suite.get("skipped") == "1"
    ends = [[child.tag for child in case] for case in suite]
    assert ends == [[], ["failure"], ["skipped"], ["error"]]


def test_the_page_has_every_cell_and_nothing_that_could_run() -> None:
    page = render_matrix_page(OUTCOMES)
    tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

    Reader().feed(page)
    assert tags.count("td") == 4
    assert not {"script", "b", "i", "img"} & {*tags}
    for word in ("passed", "failed", "does not fit", "not tested", "5 passed, 0 failed, 1 skipped"):
        assert word in page


def test_the_json_has_every_cell() -> None:
    document = json.loads(json.dumps(to_document(OUTCOMES)))
    assert document["counts"] == {"passed": 1, "failed": 1, "does not fit": 1, "not tested": 1}
    assert document["cells"][0]["tests"] == {"passed": 5, "failed": 0, "skipped": 1}
    assert document["cells"][2]["reason"] == "needs Python <3.13"


# For real ---------------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("agent-host-core", "agent-hookspecs", "agent-host-testing"):
        make_wheel(folder, name, is_plugin=False)
    with serve_index(folder) as served:
        yield served


def run_matrix(tmp_path: Path, url: str, *arguments: str) -> Run:
    done = subprocess.run(
        [*_command(url), *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=_variables(tmp_path),
        timeout=600,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def _command(url: str) -> list[str]:
    host = [sys.executable, "-m", "agent_host", "plugins", "matrix"]
    return [*host, "--index-url", f"{url}/simple/"]


def _variables(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "AGENT_HOST", "TOX"))}
    return kept | {
        "AGENT_HOST_HOME": str(tmp_path / "home"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
    }


def left_over(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "home").rglob("matrix/*")]


def test_what_does_not_fit_is_told_from_what_cannot_be_tested(tmp_path: Path, index: Index) -> None:
    make_wheel(index.folder, "acme-one", requires=["agent-hookspecs>=2"])
    make_wheel(index.folder, "acme-two")
    make_wheel(index.folder, "acme-none", is_plugin=False)
    names = ["acme-one", "acme-two", "acme-none"]
    done = run_matrix(tmp_path, index.url, *names, "--pythons", "3.2", "--json", "-")
    assert done.code == 1, done.err
    cells = {each["plugin"]: (each["status"], each["reason"]) for each in done.json["cells"]}
    assert cells == {
        "acme-one": ("does not fit", "needs agent-hookspecs>=2, this is 1.0"),
        "acme-two": ("not tested", "there is no Python 3.2 on this machine"),
        "acme-none": ("not tested", "its wheel announces no plugins"),
    }
    assert not left_over(tmp_path)


def test_an_index_that_is_gone_is_an_error_with_a_way_out(tmp_path: Path, index: Index) -> None:
    index.is_down = True
    done = run_matrix(tmp_path, index.url, "acme-one")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "--index-url" in done.err
    assert not left_over(tmp_path)


def test_dependencies_that_no_index_has_cannot_be_tested(tmp_path: Path, index: Index) -> None:
    make_wheel(index.folder, "acme-one", requires=["needed-lib"])
    files = {f"--{kind}": str(tmp_path / f"out.{kind}") for kind in ("json", "junit", "page")}
    options = [part for pair in files.items() for part in pair]
    options += ["--pythons", HERE, "--allow-untested"]
    done = run_matrix(tmp_path, index.url, "acme-one", *options)
    assert done.code == 0, done.err
    (cell,) = json.loads((tmp_path / "out.json").read_text("utf-8"))["cells"]
    assert (cell["status"], cell["reason"]) == ("not tested", "no index has needed-lib")
    assert "needed-lib" in (tmp_path / "out.page").read_text("utf-8")
    assert not left_over(tmp_path)


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, index: Index) -> None:
    make_wheel(index.folder, "acme-one")
    with subprocess.Popen(
        [*_command(index.url), "acme-one", "--pythons", HERE],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=_variables(tmp_path),
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"installing" in line:
                break
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode()
    assert process.returncode == 143, said
    assert not left_over(tmp_path)


@pytest.mark.skipif(
    not os.environ.get("AGENT_HOST_LONG_TRIALS"), reason="takes minutes: AGENT_HOST_LONG_TRIALS=1"
)
def test_tests_of_an_sdist_decide(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    pack_distributions(folder, "agent-host-core", "agent-host-testing", "pytest")
    for name, body in (("acme-good", "assert acme_good"), ("acme-bad", "assert not acme_bad")):
        package = name.replace("-", "_")
        make_wheel(folder, name)
        tests = f"import {package}\n\n\ndef test_it():\n    {body}\n"
        make_sdist(folder / f"{package}-1.0.tar.gz", {f"{name}-1.0/tests/test_it.py": tests})
    with serve_index(folder) as served:
        options = ["--find-links", str(folder), "--pythons", HERE]
        done = run_matrix(tmp_path, served.url, "acme-good", "acme-bad", *options, "--json", "-")
        assert done.code == 1, done.err
        good, bad = done.json["cells"]
        assert (good["status"], good["notes"]) == ("passed", []), good
        assert good["tests"]["passed"] > 3
        assert (bad["status"], bad["tests"]["failed"]) == ("failed", 1), bad
        assert "test_it" in bad["reason"]
    assert not left_over(tmp_path)
