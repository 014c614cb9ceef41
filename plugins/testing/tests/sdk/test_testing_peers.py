"""What pages show of other libraries runs as it stands, beside what they show of ours.

Our own blocks are run with all others of the docs; here are those of the peers, each by itself and
without a network.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_host_testing.formats import wire_format
from agent_host_testing.improvisation import Improviser, example
from agent_host_testing.script import Answer, say
from agent_host_testing.server import FakeServer
from agent_host_testing.wire import Request

DOCS = Path(__file__).resolve().parents[4] / "docs"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JOB = re.compile(r"^## (.+)$", re.MULTILINE)


def columns(page: str) -> dict[str, tuple[str, str]]:
    """For each job of a page the block of the peer, and ours."""
    text = (DOCS / page).read_text("utf-8")
    _, *parts = _JOB.split(text)
    jobs = {}
    for job, part in zip(parts[::2], parts[1::2], strict=True):
        theirs, ours = _BLOCK.findall(part)
        jobs[job] = (theirs, ours)
    return jobs


PAGES = {page: columns(page) for page in ("from-pydantic-ai.md", "from-llm.md")}


def blocks_of(page: str) -> pytest.MarkDecorator:
    jobs = [pytest.param(theirs, id=job) for job, (theirs, _) in PAGES[page].items()]
    return pytest.mark.parametrize("block", jobs)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_ten_jobs_of_both(page: str) -> None:
    assert len(PAGES[page]) == 10
    for theirs, ours in PAGES[page].values():
        assert "agent_host" not in theirs
        assert "agent_host" in ours


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    chat = wire_format("openai.chat")
    improvise = Improviser(chat)

    def answer(request: Request) -> Answer:
        wanted = json.loads(request.raw).get("response_format")
        if wanted is None:
            return improvise(request)
        return say(json.dumps(example(wanted["json_schema"]["schema"])))

    with FakeServer(chat, rest=answer, models=("fake",)) as server:
        yield server


def run(block: str, folder: Path, **environment: str) -> None:
    script = folder / "block.py"
    script.write_text(block, "utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@blocks_of("from-pydantic-ai.md")
def test_blocks_of_pydantic_ai_run(block: str, tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    run(block, tmp_path)


@blocks_of("from-llm.md")
def test_blocks_of_llm_run(block: str, tmp_path: Path, server: FakeServer) -> None:
    pytest.importorskip("llm")
    model = {
        "model_id": "local",
        "model_name": "fake",
        "api_base": server.base_url,
        "supports_tools": True,
        "supports_schema": True,
        "vision": True,
    }
    # JSON is YAML, too.
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps([model]), "utf-8")
    run(block, tmp_path, LLM_USER_PATH=str(tmp_path), OPENAI_API_KEY="none")
