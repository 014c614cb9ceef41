"""What a shell completes from what is stored: models that were listed, sessions, runs, keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_host import AgentApplication
from agent_host.key_store import KeyStore
from agent_host.plugins.model_lists import write_list
from making import POISON, install, run_python

#: What the console script does, and which of our modules and libraries it took.
CODE = """
from agent_host.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as done:
    code = done.code
heavy = {"httpx", "agent_host_echo", "pkg_main"} & {name.partition(".")[0] for name in sys.modules}
print(*heavy, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_HOST_HOME", str(folder / "home"))
        write_list("main", "", [{"id": "stone-1"}, {"id": "stone-2"}])
        KeyStore().write("main", "main", "a-key-of-main")
        with AgentApplication({}, store=True) as app:
            app.run("Hello", provider="echo", session_name="notes")
            (run,) = app.runs.list()
    (folder / "run").write_text(run.id, encoding="utf-8")
    install(folder / "tree", "main", "provider", source=POISON, default_model="stone-1")
    config = {"providers": {"fast": {"provider": "main"}}, "agents": {"reviewer": {}}}
    (folder / "c.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def completed(place: Path, words: str, shell: str = "bash") -> list[str]:
    done = run_python(
        CODE,
        trees=[place / "tree"],
        cwd=place,
        home=place / "home",
        _AGENT_HOST_COMPLETE=f"{shell}_complete",
        COMP_WORDS=words,
        COMP_CWORD=words.split(" ")[-1] if shell == "fish" else str(len(words.split(" ")) - 1),
    )
    assert done.err.strip() == "", f"{words}: {done.err}"
    return done.out.splitlines()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("agent-host run --model main/st", "main/stone-2"),
        ("agent-host run --provider main --model st", "stone-2"),
        ("agent-host run --config c.json --model fa", "fast"),
        ("agent-host run --session no", "notes"),
        ("agent-host sessions show no", "notes"),
        ("agent-host keys remove ma", "main"),
        ("agent-host keys test ma", "main"),
        ("agent-host models --provider ma", "main"),
        ("agent-host config get --config c.json providers.f", "providers.fast.provider"),
        ("agent-host config set tools.max_tu", "tools.max_turns"),
        ("agent-host config set --config c.json agents.reviewer.mo", "agents.reviewer.model"),
    ],
)
def test_what_is_stored_is_completed_without_importing_a_plugin(
    place: Path, words: str, wanted: str
) -> None:
    assert f"plain,{wanted}" in completed(place, words)


def test_runs_are_completed_by_their_ids(place: Path) -> None:
    run = (place / "run").read_text("utf-8")
    assert f"plain,{run}" in completed(place, f"agent-host runs show {run[:6]}")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_the_same(place: Path, shell: str) -> None:
    shown = "\n".join(completed(place, "agent-host sessions show no", shell))
    assert "notes" in shown


def test_without_a_store_none_is_made(tmp_path: Path) -> None:
    assert not any(completed(tmp_path, "agent-host sessions show a"))
    assert not list(tmp_path.rglob("*.db"))
