"""Makes a package of every kind from the template and tries each of them out as its author would.

For each kind and Python: ``plugins new`` makes the package, its wheel goes into a fresh environment
beside the host's wheels, its tests pass, the host lists it, gates it as its descriptor says, and
runs with it by the command that its tests print; then its own tox runs. Needs pip and tox.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelhouse import ROOT, Wheel, build, distributions, normalized

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
#: The kind whose own tox is run when there is little time; it has the shortest tests.
QUICK_TOX = "feature"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
#: Answers that differ between kinds, so that every one is given somewhere.
LICENCES = ("MIT", "Apache-2.0", "BSD-3-Clause", "Proprietary")
DESCRIPTION = 'Says "hello" in C:\\new, it\'s said: 👋'
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
#: Variables of whoever runs this that a new user would not have.
SETTINGS = ("AGENT_", "PYTHON", "TOX_", "VIRTUAL_ENV", "COV_")


class Failure(Exception):
    """A step that did not go as it must."""


def run(
    *command: str | Path, cwd: Path, environment: Mapping[str, str], code: int | None = 0
) -> str:
    """What the command says; a `Failure` with all of it if it does not end as it must."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if code is not None and done.returncode != code:
        told = " ".join(map(str, command))
        raise Failure(f"{told}\nexited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Failure(message)


@dataclass(frozen=True, slots=True)
class Kitchen:
    """What all bakes share: a scratch folder, our wheels in one place, and who makes packages."""

    scratch: Path
    wheels: Sequence[Wheel]

    @property
    def links(self) -> Path:
        return self.scratch / "links"

    @property
    def constraints(self) -> Path:
        return self.scratch / "constraints.txt"

    def prepare(self) -> None:
        """Put our wheels into one folder, and make the environment whose host makes packages."""
        self.links.mkdir()
        for wheel in self.wheels:
            shutil.copy(wheel.path, self.links)
        pins = [wheel.pin for wheel in self.wheels]
        self.constraints.write_text("\n".join(pins), encoding="utf-8")
        self.environment("maker", sys.executable, "agent-host-core[new]")

    def settings(self, name: str) -> dict[str, str]:
        """The variables of a new user who has our wheels and nothing configured."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(SETTINGS)}
        home = self.scratch / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        ours = {"PIP_FIND_LINKS": str(self.links), "PIP_CONSTRAINT": str(self.constraints)}
        quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1", "NO_COLOR": "1"}
        # Wheels of others are kept where pip keeps them; the home is a new one.
        cache = {"PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", _pip_cache())}
        return {**kept, **ours, **quiet, **cache, "HOME": str(home), "XDG_CACHE_HOME": str(home)}

    def environment(self, name: str, python: str | Path, *requirements: str | Path) -> Path:
        """A fresh environment with these; its folder of programs."""
        folder, settings = self.scratch / "environments" / name, self.settings(name)
        # One pip serves all of them; giving each its own would take longer than filling it.
        run(python, "-m", "venv", "--without-pip", folder, cwd=self.scratch, environment=settings)
        programs = folder / PROGRAMS
        install = (sys.executable, "-m", "pip", "--python", programs / "python", "install")
        run(*install, "--quiet", *requirements, cwd=self.scratch, environment=settings)
        return programs


def _pip_cache() -> str:
    command = [sys.executable, "-m", "pip", "cache", "dir"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True, slots=True)
class Baked:
    """A package that was made, and its wheel."""

    kind: str
    folder: Path
    distribution: str
    package: str
    wheel: Path

    @property
    def plugins(self) -> list[dict[str, Any]]:
        file = self.folder / "src" / self.package / "agent_plugin.json"
        entries: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["entries"]
        return entries


def bake(kitchen: Kitchen, kind: str) -> Baked:
    """Make a package of the kind with the installed host, and build its wheel."""
    number = KINDS.index(kind)
    settings = kitchen.settings("maker")
    programs = (
        kitchen.scratch / "environments" / "maker" / ("Scripts" if os.name == "nt" else "bin")
    )
    said = run(
        *(programs / "agent-host", "plugins", "new", f"Tried {kind}", "--kind", kind, "--json"),
        *(
            "--description",
            DESCRIPTION,
            "--author",
            'Ada "A." O\'Byte',
            "--email",
            "ada@example.org",
        ),
        *("--license", LICENCES[number % 4], "--docs" if number % 2 else "--no-docs"),
        *("--output", kitchen.scratch / "baked"),
        cwd=kitchen.scratch,
        environment=settings,
    )
    made = json.loads(said)
    folder, output = Path(made["path"]), kitchen.scratch / "wheels" / kind
    build_wheel = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", output)
    run(*build_wheel, folder, cwd=kitchen.scratch, environment=settings)
    answers = made["answers"]
    (wheel,) = output.glob("*.whl")
    return Baked(kind, folder, answers["distribution"], answers["package"], wheel)


def try_out(kitchen: Kitchen, baked: Baked, python: str) -> None:
    """Install the wheel beside the host's, test it, and use it as the descriptor promises."""
    name = f"{baked.kind}-{python}"
    settings = kitchen.settings(name)
    programs = kitchen.environment(name, interpreter(python), f"{baked.wheel}[test]")
    # A copy of the project without its sources: what is tested is the wheel.
    folder = kitchen.scratch / "tried" / name
    shutil.copytree(baked.folder, folder, ignore=shutil.ignore_patterns("src", ".tox"))
    settings["PATH"] = f"{programs}{os.pathsep}{settings['PATH']}"

    def call(*command: str | Path, code: int | None = 0) -> str:
        program = programs / command[0]
        return run(program, *command[1:], cwd=folder, environment=settings, code=code)

    said = call("python", "-m", "pytest", "-p", "no:cacheprovider")
    check_integration(call)
    check_listed(call, baked)
    call("agent-host", "plugins", "doctor", "--strict")
    call("agent-host", "plugins", "validate", "--strict", baked.distribution)
    for plugin in baked.plugins:
        check_gating(call, baked, plugin)
    following = said.rpartition("Next:")[2].rpartition("=====")[0].partition("\n=")[0]
    expect("agent-host" in following, f"the tests do not say how to go on:\n{said}")
    run("bash", "-euc", following, cwd=folder, environment=settings)


def check_integration(call: Callable[..., str]) -> None:
    """Tests with a real model are expected to fail while none is named; not every kind has any."""
    said = call("python", "-m", "pytest", "-p", "no:cacheprovider", "-m", "integration", code=None)
    last = said.strip().splitlines()[-1]
    unexpected = ("passed", " failed", "error")
    expect(not any(word in last for word in unexpected), f"integration tests: {said}")


def check_listed(call: Callable[..., str], baked: Baked) -> None:
    listed = json.loads(call("agent-host", "plugins", "list", "--json"))["plugins"]
    found = {
        (record["role"], record["name"], record["state"])
        for record in listed
        if normalized(record["distribution"]) == normalized(baked.distribution)
    }
    wanted = {(plugin["role"], plugin["name"], "discovered") for plugin in baked.plugins}
    expect(found == wanted, f"the host lists {found} and not {wanted}")


def check_gating(call: Callable[..., str], baked: Baked, plugin: Mapping[str, Any]) -> None:
    """A plugin takes part with its tags, and does not without each or with one it forbids.

    One that opens stores takes part in no request.
    """
    providers = [each["name"] for each in baked.plugins if each["role"] == "provider"]
    provider = next(iter(providers), "echo")

    def enabled(add: Sequence[str], remove: Sequence[str]) -> bool:
        tags = (f"add_tags={json.dumps(add)}", f"remove_tags={json.dumps(remove)}")
        setting = [part for tag in tags for part in ("--set", tag)]
        said = call("agent-host", "plugins", "explain", "--provider", provider, *setting, "--json")
        decision = json.loads(said)
        return f"{plugin['role']}:{plugin['name']}" in decision["enabled"] or (
            plugin["role"] == "provider" and decision["provider"] == plugin["name"]
        )

    if plugin.get("stores"):
        expect(not enabled([], []), f"{plugin['name']} takes part in requests")
        return
    required, forbidden = plugin.get("required_tags", []), plugin.get("forbidden_tags", [])
    expect(enabled(required, forbidden), f"{plugin['name']} takes no part with its tags")
    for tag in required:
        rest = [each for each in required if each != tag]
        expect(not enabled(rest, [*forbidden, tag]), f"{plugin['name']} takes part without {tag}")
    for tag in forbidden:
        expect(not enabled([*required, tag], []), f"{plugin['name']} takes part with {tag}")


def try_tox(kitchen: Kitchen, baked: Baked, pythons: Sequence[str]) -> None:
    """Its own tox: style, types, fitness and tests."""
    name = f"{baked.kind}-tox"
    environments = [
        "lint",
        "type",
        "validate",
        *(f"py{python.replace('.', '')}" for python in pythons),
    ]
    settings = kitchen.settings(name)
    folders = dict.fromkeys(str(interpreter(python).parent) for python in pythons)
    settings["PATH"] = os.pathsep.join([settings["PATH"], *folders])
    tox = (sys.executable, "-m", "tox", "run", "--skip-missing-interpreters", "false")
    where = ("--workdir", kitchen.scratch / "tox" / baked.kind, "-e", ",".join(environments))
    run(*tox, *where, cwd=baked.folder, environment=settings)


def interpreter(python: str) -> Path:
    """The interpreter of that version: on the path, or one of pyenv's."""
    if sys.version_info[:2] == tuple(map(int, python.split("."))):
        return Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(pyenv.glob(f"versions/{python}.*/bin/python"))
    on_path = shutil.which(f"python{python}")
    if not found and on_path is None:
        raise Failure(f"there is no Python {python}; leave it out with --pythons")
    return found[-1] if found else Path(str(on_path))


def main() -> int:
    parser = argparse.ArgumentParser(description="Bake the template and try out what comes of it.")
    parser.add_argument("--kinds", default=",".join(KINDS), help="with commas between")
    parser.add_argument("--pythons", default=",".join(PYTHONS), help="with commas between")
    parser.add_argument(
        "--quick", action="store_true", help="each kind on one Python; one of them in its own tox"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--wheelhouse", type=Path, default=ROOT / ".tox" / "wheelhouse")
    options = parser.parse_args()
    kinds, pythons = options.kinds.split(","), options.pythons.split(",")
    wheels = build(distributions().values(), options.wheelhouse.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        kitchen = Kitchen(Path(scratch).resolve(), [*wheels.values()])
        kitchen.prepare()
        made = [bake(kitchen, kind) for kind in kinds]
        return report(tasks(kitchen, made, pythons, quick=options.quick), options.jobs)


def tasks(
    kitchen: Kitchen, made: Sequence[Baked], pythons: Sequence[str], *, quick: bool
) -> dict[str, Callable[[], None]]:
    """What is to be done, by name. Quick takes turns among the oldest and the newest Python."""
    found: dict[str, Callable[[], None]] = {}
    for number, baked in enumerate(made):
        chosen = [(pythons[0], pythons[-1])[number % 2]] if quick else pythons
        for python in chosen:
            found[f"{baked.kind} on {python}"] = _try(try_out, kitchen, baked, python)
        if not quick or baked.kind == QUICK_TOX:
            found[f"{baked.kind} in its own tox"] = _try(try_tox, kitchen, baked, chosen)
    return found


def _try(step: Callable[..., None], *arguments: Any) -> Callable[[], None]:
    return lambda: step(*arguments)


def report(found: Mapping[str, Callable[[], None]], jobs: int) -> int:
    """Do everything, a few at once, and say how each of them went."""

    def timed(name: str) -> str:
        start = time.monotonic()
        try:
            found[name]()
        except Failure as failure:
            print(f"{name}: {failure}", file=sys.stderr, flush=True)
            return f"{name}: failed"
        print(f"{name}: sound, {time.monotonic() - start:.0f} s", flush=True)
        return ""

    start = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        failed = [outcome for outcome in pool.map(timed, found) if outcome]
    print(f"{len(found) - len(failed)} of {len(found)} sound, {time.monotonic() - start:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
