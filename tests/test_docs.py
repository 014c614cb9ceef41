"""The documentation is true: generated pages are current, code in it runs, tables agree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def runnable() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        if page.name == "hooks.md":
            continue
        for number, code in enumerate(blocks(page, "python"), 1):
            found.append((f"{page.name} block {number}", code))
    return found


@pytest.mark.parametrize(("where", "code"), runnable(), ids=[where for where, _ in runnable()])
def test_python_blocks_run(where: str, code: str, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(code, encoding="utf-8")
    environment = {**_environment(tmp_path)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 0, f"{where}:\n{done.stderr}"


def _environment(tmp_path: Path) -> dict[str, str]:
    import os

    return {
        **os.environ,
        "AGENT_HOST_CONFIG_HOME": str(tmp_path / "home"),
        "AGENT_HOST_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_json_blocks_are_json(page: Path) -> None:
    for text in blocks(page, "json"):
        json.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import runpy, json; pages = runpy.run_path('docs/generate.py')['PAGES'];"
            "print(json.dumps({name: render() for name, render in pages.items()}))",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**_environment(ROOT), "PYTHONSAFEPATH": "1"},
        check=True,
    )
    for name, text in json.loads(done.stdout).items():
        current = (ROOT / "docs" / name).read_text("utf-8")
        assert current == text, f"run python docs/generate.py to renew docs/{name}"


def test_exit_codes_stand_in_the_docs_as_they_are() -> None:
    from agent_host.cli.app import EXIT_CODES

    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)
    assert {int(code): text.replace("`", "") for code, text in rows} == EXIT_CODES


def test_config_sample_is_valid() -> None:
    from agent_host.config import parse_config

    (sample,) = blocks(ROOT / "docs" / "tools.md", "json")
    parse_config(json.loads(sample))


def test_readme_plugin_works_as_written(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    (metadata,) = [text for text in blocks(readme, "toml") if "build-system" in text]
    (code,) = [text for text in blocks(readme, "python") if "class Hello" in text]
    (descriptor,) = blocks(readme, "json")
    package = tmp_path / "hello" / "hello_provider"
    package.mkdir(parents=True)
    (package.parent / "pyproject.toml").write_text(metadata, encoding="utf-8")
    (package / "__init__.py").write_text(code, encoding="utf-8")
    (package / "agent_plugin.json").write_text(descriptor, encoding="utf-8")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"plugins": [f"path:{package.parent}"]}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "agent_host", "run", "--config", config, "--provider", "hello"],
        input="World",
        capture_output=True,
        text=True,
        env=_environment(tmp_path),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "Hello, World!\n"), done.stderr
