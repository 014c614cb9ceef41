"""The report and what failures say: told apart, counted, redacted, and the same with workers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import (
    ContractError,
    HookError,
    HookResultError,
    InvalidRequestError,
    LoadError,
    ProtocolError,
    StreamCutError,
)
from agent_hookspecs.logs import remember_secrets
from agent_host_testing.tiers import Status, tier_of
from agent_host_testing.violations import Contract, Exchange, Violation, explain_violation

SUITE = '''
from agent_host_testing import ProviderConformance, check, not_claimed, require, say

SETTINGS = {"model": "fake-chat"}


class TestSubject(ProviderConformance):
    package = "agent_host_openai_compatible"
    plugin = "custom"
    wire = "openai.chat"
    settings = SETTINGS

    @check("wishes", "README.md#wishes")
    def test_wish(self):
        """A wish comes true."""
        with self.talk() as talk:
            talk.ask(say("No."), "Please, with " + talk.config["api_key"]).expect()
            require(False, "it did not")

    @check("magic", "README.md#magic")
    def test_magic(self):
        """Magic happens."""
        not_claimed("there is none")
'''


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_subject.py").write_text(SUITE, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--import-mode=importlib"),
            *(
                "-k",
                "wish or magic or (test_text and not texts) or round_trip",
                *options,
                str(folder),
            ),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_report_tells_passed_failed_and_not_claimed_apart(tmp_path: Path, workers: str) -> None:
    file = tmp_path / "made" / "report.json"
    done = run(tmp_path, "-n", workers, "--conformance-report", str(file))
    assert done.returncode == 1, done.stdout
    report: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert report["counts"] == {"failed": 1, "skipped": 0, "passed": 3, "not claimed": 2}
    (suite,) = report["suites"].values()
    assert (suite["plugin"], suite["role"]) == ("custom", "provider")
    assert suite["capabilities"]["text"] == "passed"
    assert suite["capabilities"]["wishes"] == "failed"
    assert suite["capabilities"]["magic"] == "not claimed"
    told = {check["check"]: check for check in suite["checks"]}
    assert told["test_magic"]["reason"] == "there is none"
    assert told["test_wish"]["sentence"] == "A wish comes true."
    assert "it did not" in told["test_wish"]["reason"]
    assert suite["claims"] == {"supports_reasoning": False, "supports_tools": True}
    assert suite["seconds"] == pytest.approx(sum(check["seconds"] for check in suite["checks"]))
    assert suite["tier"]["reached"] == ""
    assert "wishes: 1 of 1 failed" in suite["tier"]["missing"]
    assert any("checks were not run" in each for each in suite["tier"]["missing"])
    page = file.with_suffix(".md").read_text("utf-8")
    assert "## provider `custom`" in page
    assert "Tier: **none yet**" in page
    assert "| wishes | **failed** | 1 |" in page
    assert "A wish comes true. (README.md#wishes)" in page
    table = done.stdout.partition("= conformance =")[2].splitlines()
    assert ["wishes", "FAILED", "1/1"] in [line.split() for line in table]
    assert ["magic", "not", "claimed"] in [line.split() for line in table]


def test_a_quick_run_says_what_it_leaves_out(tmp_path: Path) -> None:
    again = "\n\nclass TestOther(TestSubject):\n    pass\n"
    (tmp_path / "test_again.py").write_text(SUITE + again, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--quick", "--collect-only", "test_again.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    told = done.stdout.partition("left out by --quick: ")[2]
    assert "byte splits (" in told
    assert "; what TestOther asks again of the same plugin (" in told
    left = [line.split("::") for line in done.stdout.splitlines() if "::" in line]
    names = {suite: {name for _, each, name in left if each == suite} for _, suite, _ in left}
    assert names["TestOther"] < names["TestSubject"]
    assert "test_knobs_move_the_request" in names["TestOther"]
    assert not any(name.startswith("test_wire_shapes") for name in names["TestSubject"])


@pytest.mark.parametrize(
    ("outcomes", "known", "reached", "said"),
    [
        ({"text": ["passed", "failed"]}, {}, "", "text: 1 of 2 failed"),
        ({"text": ["skipped"]}, {}, "", "text: 1 of 1 skipped"),
        ({"text": ["passed"]}, {"left_out": 3}, "", "3 checks were not run"),
        ({"text": ["passed"]}, {"typed": False}, "bronze", "the package has no py.typed"),
        ({"secrets": ["not claimed"]}, {}, "bronze", "secrets: nothing of it could be tried"),
        ({"tools": ["not claimed"]}, {}, "silver", ""),
        ({"recordings": ["not claimed"]}, {}, "silver", "recordings: none was replayed"),
        ({"recordings": ["passed"]}, {"typed": True}, "silver", ""),
    ],
)
def test_a_tier_is_what_a_run_can_know(
    outcomes: dict[str, list[Status]], known: dict[str, Any], reached: str, said: str
) -> None:
    tier = tier_of(outcomes, **known)
    assert tier.reached == reached
    assert tier.missing if said else not tier.missing
    assert said in "; ".join(tier.missing)
    # Nobody reaches gold by a run of the suite alone, and it is said why.
    assert any("every Python" in each for each in tier.unknown) is (reached == "silver")


def test_a_failure_says_what_was_asked_and_shows_the_bytes_without_the_key(tmp_path: Path) -> None:
    said = run(tmp_path, "--tb=short").stdout
    assert "the contract asks: A wish comes true." in said
    assert "written in:        README.md#wishes" in said
    assert "what happened:     it did not" in said
    assert "request 1: POST /v1/chat/completions" in said
    assert '{"role": "user", "content": "Please, with [redacted]"}' in said
    assert "answer 1: HTTP 200" in said
    assert "canary" not in said.partition("the contract asks")[2].partition("Captured")[0]


MANY = '''
import pytest
from agent_host_testing import ToolConformance, check, not_claimed, require


class TestMany(ToolConformance):
    package, plugin = "agent_host_files", "files"

    @pytest.mark.parametrize("case", range(5))
    @check("wishes", "README.md#wishes")
    def test_wish(self, case):
        """A wish comes true."""
        require(False, "it did not" if case else "it did too late")

    @check("zeal", "README.md#zeal")
    def test_zeal(self):
        """The last of all."""
        not_claimed("nobody asked")
'''


@pytest.mark.parametrize("workers", ["0", "2"])
def test_one_cause_is_told_whole_once(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_many.py").write_text(MANY, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = ("-p", "no:cacheprovider", "-n", workers, "-k", "wish or zeal")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        # In CI pytest repeats whole messages in its summary.
        env={**os.environ, "COLUMNS": "100", "CI": "", "BUILD_NUMBER": ""},
        timeout=120,
        check=False,
    )
    assert "5 failed" in done.stdout, done.stdout
    assert done.stdout.count("the contract asks: ") == 2
    assert done.stdout.count("the same as in TestMany::test_wish[") == 3
    # What is not claimed has a mark, so that a run that ends with it is seen to have ended.
    assert re.search(r"^[F-]{6} .*\[100%\]$", done.stdout, re.MULTILINE), done.stdout


def _caused(error: Exception) -> Exception:
    error.__cause__ = KeyError("whole")
    return error


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (Violation("it is not well"), "be well"),
        (StreamCutError("it ended"), "be well"),
        (
            _caused(HookError("it raised", plugin="acme", hook="init")),
            "mend init, which raised Key",
        ),
        (HookResultError("no", plugin="acme", hook="init"), "return from init what docs/hooks.md"),
        (LoadError("no class", plugin="acme"), "mend what keeps the class from being made"),
        (ContractError("no hook", plugin="acme"), "give the class what its role asks for"),
        (KeyError("whole"), "mend the line that raised it"),
        (ProtocolError("no event"), "let framing and build_request say how the answer below"),
        (InvalidRequestError("refused"), "send what the API takes"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_to_change_is_about_what_failed(error: Exception, change: str) -> None:
    contract = Contract("things", "Things are well.", "README.md#things", change="be well")
    text = str(explain_violation(contract, "acme", error))
    assert f"  what to change:    {change}" in text


def test_without_the_option_nothing_is_written_or_imported(tmp_path: Path) -> None:
    probe = tmp_path / "test_probe.py"
    probe.write_text(
        "import sys\n\n\ndef test_lean():\n"
        "    kit = [m for m in sys.modules if m.startswith(('agent_host', 'agent_hookspecs'))]\n"
        "    assert sorted(kit) == ['agent_host_testing', 'agent_host_testing.pytest_plugin']\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, probe.name],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_long_bodies_are_cut_to_their_ends() -> None:
    messages = [{"role": "user", "content": f"message {n} " + "x" * 500} for n in range(50)]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    exchange = Exchange("POST /x", body, 400, b"no JSON\n" * 500)
    contract = Contract("things", "Things are well.", "README.md#things")
    text = str(explain_violation(contract, "acme", AssertionError("they are not"), [exchange]))
    assert "message 0 " in text
    assert "message 49 " in text
    assert "44 entries left out" in text
    assert len(text) < 8000


def test_secrets_are_taken_out_of_what_is_told() -> None:
    remember_secrets(["told-nobody"])
    error = InvalidRequestError("refused told-nobody", hint="use told-nobody")
    contract = Contract("things", "Things are well.", "README.md#things")
    exchange = Exchange("POST /?key=told-nobody", b'{"key": "told-nobody"}', 400, b"told-nobody")
    text = str(explain_violation(contract, "acme", error, [exchange]))
    assert "InvalidRequestError: refused [redacted] (use [redacted])" in text
    assert "told-nobody" not in text
