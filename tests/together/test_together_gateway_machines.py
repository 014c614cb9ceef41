"""Two gateways that share a PostgreSQL database and nothing else, behind nginx.

Each has folders of its own, as two machines have; nginx is told what the docs tell people.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_host_gateway", reason="needs agent-host-gateway")

from gateway_bench import Upstreams
from gateway_process import DOORS, Answered, ask, minimal_body, opened_store
from postgres_server import running_server

from agent_host_gateway.keys import KEPT_SECONDS, Keys
from agent_host_testing import Drip, Reply, Text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gateway.md"
HOST = "import sys; from agent_host.cli import main; sys.exit(main(sys.argv[1:]))"
API = "/console/api/"
_MISSING = "nginx is missing: apt-get install nginx-light"


@dataclass
class Machine:
    """A gateway with a config, data and cache of its own."""

    folder: Path
    port: int
    workers: int = 1
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the host on this machine."""
        return subprocess.run(
            self._command(*words), env=self._env, capture_output=True, text=True, check=False
        )

    def start(self) -> None:
        words = ("serve", "--port", str(self.port), "--workers", str(self.workers))
        self.process = subprocess.Popen(
            self._command(*words), env=self._env, start_new_session=True
        )

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while not _is_ready(self.address):
            assert self.process is not None
            assert self.process.poll() is None, "the gateway has ended before it began"
            assert time.monotonic() < deadline, "the gateway does not begin"
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a power failure would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # Its workers die by themselves; what reaches one of them at that moment is lost.
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                # Nothing is lost: that nobody is there is the answer.
                return

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, "AGENT_HOST_HOME": str(self.folder / "home")}

    def _command(self, *words: str) -> list[str]:
        config = ("--config", str(self.folder / "agent-host.json"))
        return [sys.executable, "-c", HOST, *words, *config]


@dataclass
class Site:
    """What clients see: the address of nginx; and what stands behind it."""

    address: str
    machines: list[Machine]
    upstreams: Upstreams
    work: Path
    config: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, body: Any = None, *, key: str = "team", **more: Any) -> Answered:
        return ask(self.address, path, body, key=self.secrets[key], **more)


def _is_ready(address: str) -> bool:
    try:
        return ask(address, "/readyz").status == 200
    except OSError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def running_nginx(folder: Path, machines: list[Machine]) -> Iterator[str]:
    """nginx with the configuration that the docs show, but for addresses and TLS."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    (shown,) = re.findall(r"```text\n(upstream .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    port = _free_port()
    for place, machine in enumerate(machines, 11):
        assert f"10.0.0.{place}:4180" in shown
        shown = shown.replace(f"10.0.0.{place}:4180", machine.address)
    # TLS is nginx's own affair, and needs a certificate.
    shown, count = re.subn(r"listen 443 ssl;(\s+ssl_\S+ .*;)+", f"listen 127.0.0.1:{port};", shown)
    assert count == 1
    file = folder / "nginx.conf"
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file.write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n"
        + ("user root;\n" if os.getuid() == 0 else "")
        + f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{shown}}}\n"
    )
    command = [program, "-p", str(folder), "-c", str(file), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 30
        while not _is_ready(f"127.0.0.1:{port}"):
            if process.poll() is not None:
                assert process.stderr is not None
                pytest.fail(f"nginx refuses what the docs show: {process.stderr.read().decode()}")
            assert time.monotonic() < deadline, (folder / "error.log").read_text()
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    work = folder / "work"
    work.mkdir()
    with ExitStack() as stack:
        database = stack.enter_context(contextmanager(running_server)())
        names = ("google.generate", "anthropic.messages", "openai.chat")
        upstreams = stack.enter_context(Upstreams(*names))
        config = {
            **upstreams.config,
            "store": database.url,
            "agents": {"clerk": {"provider": "echo", "model": "echo-1"}},
        }
        config["request_defaults"] = {"root": str(work)}
        machines = []
        for number in range(2):
            machine = Machine(folder / f"machine-{number}", _free_port(), workers=2 - number)
            machine.folder.mkdir()
            (machine.folder / "agent-host.json").write_text(json.dumps(config))
            machines.append(machine)
        added = machines[0].run("serve", "keys", "add", "team", "--console")
        assert added.returncode == 0, added.stderr
        for machine in machines:
            machine.start()
            stack.callback(machine.kill)
        for machine in machines:
            machine.wait()
        address = stack.enter_context(running_nginx(folder, machines))
        yield Site(address, machines, upstreams, work, config, {"team": added.stdout.strip()})


def requests_of(site: Site, machine: Machine) -> int:
    """How many requests a machine has answered, of which a worker knows its own."""
    told = ask(machine.address, "/metrics", key=site.secrets["team"]).text
    return sum(int(n) for n in re.findall(r"requests_total\{.*\} (\d+)", told))


def test_a_conversation_goes_on_whichever_machine_is_asked(site: Site) -> None:
    body = minimal_body("responses", "one")
    made = site.ask(DOORS["responses"], body).body
    for turn in range(5):
        # nginx asks one after the other; the last two are asked by name.
        where = site.address if turn < 3 else site.machines[turn - 3].address
        body = {**minimal_body("responses", f"turn {turn}"), "previous_response_id": made["id"]}
        answered = ask(where, DOORS["responses"], body, key=site.secrets["team"])
        assert answered.status == 200, answered.text
        made = answered.body
    for machine in site.machines:
        path = f"{DOORS['responses']}/{made['id']}"
        assert ask(machine.address, path, key=site.secrets["team"]).body == made
    assert requests_of(site, site.machines[1]) >= 2


@pytest.mark.parametrize(
    ("door", "name"),
    [
        ("chat", "google.generate"),
        ("chat", "anthropic.messages"),
        ("messages", "google.generate"),
    ],
)
def test_signatures_are_found_by_the_other_machine(site: Site, door: str, name: str) -> None:
    body, answer = begin_with_a_call(site, door, name)
    server = site.upstreams.servers[name]
    asked = len(server.requests)
    for machine in reversed(site.machines):
        second = ask(machine.address, DOORS[door], body, key=site.secrets["team"])
        assert second.status == 200, second.text
        assert "x-agent-host-warning" not in second.headers, second.headers
    for request in server.requests[asked:]:
        assert "fake-signature" in json.dumps(request.body), answer
    assert server.problems == []


def begin_with_a_call(site: Site, door: str, name: str) -> tuple[dict[str, Any], Answered]:
    """The second request of a conversation whose first was answered by the first machine."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    body = {**minimal_body(door, "weather?", site.upstreams.model(name)), "max_tokens": 30_000}
    if door == "messages":
        body |= {"tools": [{"name": "weather", "input_schema": schema}]}
        body["thinking"] = {"type": "adaptive"}
    else:
        function = {"name": "weather", "parameters": schema}
        body |= {"tools": [{"type": "function", "function": function}]}
        body["reasoning_effort"] = "high"
    first = ask(site.machines[0].address, DOORS[door], body, key=site.secrets["team"])
    assert first.status == 200, first.text
    if door == "messages":
        (use,) = [each for each in first.body["content"] if each["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "7"}
        said = {"role": "assistant", "content": first.body["content"]}
        body["messages"] += [said, {"role": "user", "content": [result]}]
    else:
        said = first.body["choices"][0]["message"]
        (call,) = said["tool_calls"]
        body["messages"] += [said, {"role": "tool", "tool_call_id": call["id"], "content": "7"}]
    return body, first


def test_keys_and_what_they_use_are_those_of_all_machines(site: Site) -> None:
    with opened_store(site.config) as store:
        site.secrets["slow"] = Keys(store).add("slow", requests_per_minute=3)[1]
        site.secrets["small"] = Keys(store).add("small", budget_tokens=1)[1]
        site.secrets["short"] = Keys(store).add("short")[1]
    one, other = (machine.address for machine in site.machines)

    def status(address: str, key: str) -> int:
        body = minimal_body("chat")
        return ask(address, DOORS["chat"], body, key=site.secrets[key]).status

    statuses = [status(where, "slow") for where in (one, other) * 4]
    # A minute may have ended in between.
    assert statuses[:3] == [200, 200, 200]
    assert statuses.count(200) in (3, 6)
    assert status(one, "small") == 200
    deadline = time.monotonic() + 5
    while status(other, "small") == 200:
        assert time.monotonic() < deadline, "what was used elsewhere is not counted"
    assert (status(one, "short"), status(other, "short")) == (200, 200)
    revoked = site.machines[1].run("serve", "keys", "revoke", "short")
    assert revoked.returncode == 0, revoked.stderr
    deadline = time.monotonic() + KEPT_SECONDS
    while time.monotonic() < deadline:
        # Whoever is asked has just read the keys, and yet does not believe them for longer.
        status(one, "short")
        status(other, "short")
    # Who asks so often with a wrong key is told to wait.
    assert {status(where, "short") for where in (one, other) * 3} <= {401, 429}


def test_chunks_arrive_before_the_end_and_who_leaves_ends_the_upstream(site: Site) -> None:
    server = site.upstreams.servers["openai.chat"]
    server.queue(Reply((Text("word " * 200),), fragments=200), fault=Drip(0.2))
    body = {**minimal_body("chat", model=site.upstreams.model("openai.chat")), "stream": True}
    before = server.abandoned
    connection = HTTPConnection(site.address, timeout=30)
    headers = {"content-type": "application/json"}
    headers["authorization"] = f"Bearer {site.secrets['team']}"
    begun = time.monotonic()
    connection.request("POST", DOORS["chat"], json.dumps(body), headers)
    response = connection.getresponse()
    while b"word" not in response.read1(100_000):
        pass
    # A proxy that holds events back sends nothing until the end, which is 40 seconds away.
    assert time.monotonic() - begun < 20
    response.close()
    connection.close()
    deadline = time.monotonic() + 10
    while server.abandoned == before:
        assert time.monotonic() < deadline, "the upstream is asked on"
        time.sleep(0.02)


def test_a_machine_that_dies_is_not_missed(site: Site) -> None:
    one = site.machines[0]
    key = site.secrets["team"]
    prompt = '/call write_file {"path": "made.txt", "content": "made"}'
    asked = {"prompt": prompt, "model": "agent/clerk"}
    begun = ask(one.address, f"{API}runs", asked, key=key).body
    followed = ask(one.address, f"{API}runs/{begun['run']}/events", key=key)
    assert '"waiting"' in followed.text
    made = ask(one.address, DOORS["responses"], minimal_body("responses"), key=key).body
    one.kill()
    try:
        going_on = {**minimal_body("responses"), "previous_response_id": made["id"]}
        for _ in range(3):
            answered = site.ask(DOORS["responses"], going_on)
            assert answered.status == 200, answered.text
        run = site.ask(f"{API}runs/{begun['run']}").body
        (question,) = run["questions"]
        decisions = {"decisions": {question["id"]: "once"}}
        later = site.ask(f"{API}runs/{begun['run']}/decisions", decisions)
        assert later.status == 200, later.text
        path = f"{API}runs/{begun['run']}/events?after={later.body['after']}"
        assert '"succeeded"' in site.ask(path).text
        assert (site.work / "made.txt").read_text() == "made"
    finally:
        one.start()
        one.wait()
