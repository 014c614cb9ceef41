"""Builds every distribution as it would be released and checks what a user would get.

The wheel has exactly the files of its package, the sdist gives the same wheel, the metadata is
valid, and in a clean environment the host finds every plugin and its descriptor, which says what
the classes say.
"""

from __future__ import annotations

import argparse
import configparser
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata
from wheelhouse import ROOT, Distribution, Wheel, distributions, install

ENTRY_POINTS = "agent_host.plugins"
DESCRIPTOR = "agent_plugin.json"
#: What an sdist may hold beside the package.
SDIST_EXTRAS = {
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "hatch_build.py",
    "pyproject.toml",
}
#: Whose tests break what is beside it in the repository, and can be run there alone.
WITHOUT_TESTS = {"testing"}


class Failure(Exception):
    """Something in a package is not as it must be."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Failure(message)


def expect_same(what: str, found: set[str], wanted: set[str]) -> None:
    problems = [
        *(f"lacks {name}" for name in sorted(wanted - found)),
        *(f"has the foreign {name}" for name in sorted(found - wanted)),
    ]
    expect(not problems, f"{what} {', '.join(problems)}")


def build(folder: Path, output: Path, *options: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output), *options]
    done = subprocess.run(
        [*command, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    expect(done.returncode == 0, f"the build failed:\n{done.stdout}")


def contents(path: Path) -> dict[str, bytes]:
    """The files of a wheel or an sdist by name; an sdist's without the top folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    files: dict[str, bytes] = {}
    with tarfile.open(path) as sdist:
        for member in sdist.getmembers():
            expect(member.isfile(), f"{path.name}: {member.name} is no plain file")
            content = sdist.extractfile(member)
            if content:
                files[member.name.partition("/")[2]] = content.read()
    return files


def package_files(distribution: Distribution) -> dict[str, bytes]:
    """What the source tree has of the package, named as in the wheel."""
    package = distribution.package_folder
    base = package.parent if (package / "__init__.py").exists() else package
    files = {path.relative_to(base).as_posix(): path for path in _files(package)}
    for place, folder in distribution.shipped:
        files |= {f"{place}/{path.relative_to(folder).as_posix()}": path for path in _files(folder)}
    return {name: path.read_bytes() for name, path in files.items()}


def _files(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]


def announced(files: dict[str, bytes]) -> dict[str, str]:
    """The entry points of our group in a wheel's files."""
    parser = configparser.ConfigParser(delimiters=("=",))
    for name, content in files.items():
        if name.endswith(".dist-info/entry_points.txt"):
            parser.read_string(content.decode())
    return dict(parser[ENTRY_POINTS]) if parser.has_section(ENTRY_POINTS) else {}


def check_metadata(content: bytes) -> Metadata:
    metadata = Metadata.from_email(content, validate=True)
    expect(metadata.license_expression == "Apache-2.0", "the metadata names another licence")
    expect(metadata.license_files == ["LICENSE"], "the metadata lists no LICENSE")
    expect(metadata.requires_python, "the metadata says nothing of Python")
    expect(metadata.summary and metadata.description, "the metadata has no description")
    return metadata


def check_licence(archive: str, text: bytes) -> None:
    expect(
        text == (ROOT / "LICENSE").read_bytes(),
        f"the LICENSE of the {archive} differs from the one at the root",
    )


def check_wheel(distribution: Distribution, path: Path) -> dict[str, bytes]:
    files = contents(path)
    own = {name: content for name, content in files.items() if ".dist-info/" not in name}
    wanted = package_files(distribution)
    expect_same("the wheel", set(own), set(wanted))
    expect(own == wanted, "the wheel's files differ from the tree's")
    expect(any(name.endswith("/py.typed") for name in own), "the wheel lacks py.typed")

    info = f"{'-'.join(path.name.split('-')[:2])}.dist-info"
    rest = set(files) - set(own) - {f"{info}/entry_points.txt"}
    required = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")}
    expect_same("the wheel's dist-info", rest, required)
    check_licence("wheel", files[f"{info}/licenses/LICENSE"])
    check_metadata(files[f"{info}/METADATA"])
    for name, package in announced(files).items():
        expect(
            ":" in package or f"{package.replace('.', '/')}/{DESCRIPTOR}" in own,
            f"the entry point {name} names {package}, which has no {DESCRIPTOR}",
        )
    return files


def check_sdist(distribution: Distribution, path: Path) -> None:
    files = contents(path)
    folders = [distribution.package_folder, *(folder for _, folder in distribution.shipped)]
    trees = {folder.relative_to(distribution.folder).parts[0] for folder in folders}
    own = {name for name in files if name.split("/")[0] in trees}
    wanted = {
        file.relative_to(distribution.folder).as_posix()
        for folder in folders
        for file in _files(folder)
    }
    expect_same("the sdist", own, wanted)
    tests = {name for name in files if name.startswith("tests/")}
    if distribution.is_plugin and distribution.name not in WITHOUT_TESTS:
        wanted = _tests(distribution)
        expect_same("the sdist", tests - (_helpers() - wanted), wanted)
        own |= tests
    foreign = set(files) - own - SDIST_EXTRAS
    expect(not foreign, f"the sdist has the foreign {', '.join(sorted(foreign))}")
    check_licence("sdist", files["LICENSE"])
    check_metadata(files["PKG-INFO"])


def _tests(distribution: Distribution) -> set[str]:
    return {
        f"tests/{x.relative_to(distribution.tests).as_posix()}" for x in _files(distribution.tests)
    }


def _helpers() -> set[str]:
    """What tests of several distributions may share."""
    shared = [*ROOT.glob("tests/*.py"), *ROOT.glob("plugins/*/tests/*_bench.py")]
    return {f"tests/{path.name}" for path in shared if not path.name.startswith("test_")}


def check_distribution(distribution: Distribution, output: Path) -> Wheel:
    """Build and check one distribution; its wheel is left alone in a folder below ``output``."""
    from_tree, from_sdist = output / "from-tree", output / "from-sdist"
    build(distribution.folder, from_tree, "--wheel")
    build(distribution.folder, from_sdist)
    (wheel,) = from_tree.glob("*.whl")
    (rebuilt,) = from_sdist.glob("*.whl")
    (sdist,) = from_sdist.glob("*.tar.gz")
    files = check_wheel(distribution, wheel)
    check_sdist(distribution, sdist)
    expect(
        rebuilt.name == wheel.name and contents(rebuilt) == files,
        "the wheel built from the sdist differs from the one built from the tree",
    )
    return Wheel.read(wheel)


def run_host(python: Path, folder: Path, *arguments: str) -> str:
    """Call the installed command as a new user would: an empty folder, nothing configured."""
    command = [str(python.with_name("agent-host")), *arguments]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("AGENT_", "PYTHON"))
    }
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        command, cwd=folder, env=environment | home, capture_output=True, text=True, check=False
    )
    expect(
        done.returncode == 0,
        f"{' '.join(arguments)} exited with {done.returncode}:\n{done.stdout}{done.stderr}",
    )
    return done.stdout


def check_installed(wheels: dict[str, Wheel]) -> str:
    """Install all wheels into a clean environment and ask the host what it finds there."""
    with tempfile.TemporaryDirectory() as scratch:
        environment, folder = Path(scratch, "environment"), Path(scratch, "user")
        folder.mkdir()
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        install(list(wheels), wheels, python=str(python))
        listed: list[dict[str, Any]] = json.loads(
            run_host(python, folder, "plugins", "list", "--json")
        )["plugins"]
        for record in listed:
            expect(record["state"] == "discovered", f"{record['name']} is listed as {record}")
        for wheel in wheels.values():
            files = contents(wheel.path)
            for bundle, package in announced(files).items():
                found = sorted(
                    record["name"]
                    for record in listed
                    if record["distribution"] == wheel.project and record["bundle"] == bundle
                )
                described = json.loads(files[f"{package.replace('.', '/')}/{DESCRIPTOR}"])
                wanted = sorted(entry["name"] for entry in described["entries"])
                expect(found == wanted, f"{wheel.project}: the host lists {found}, not {wanted}")
                run_host(python, folder, "plugins", "describe", "--check", wheel.project)
        run_host(python, folder, "plugins", "doctor", "--strict")
        return ", ".join(sorted(record["name"] for record in listed))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build and check every distribution.")
    parser.add_argument("output", type=Path, help="an empty folder for what is built")
    output: Path = parser.parse_args().output.resolve()
    wheels: dict[str, Wheel] = {}
    failed = False
    for distribution in distributions().values():
        try:
            wheel = check_distribution(distribution, output / distribution.name)
        except Failure as failure:
            failed = True
            print(f"{distribution.name}: {failure}", file=sys.stderr)
        else:
            wheels[distribution.name] = wheel
            print(f"{wheel.project} {wheel.version}: wheel and sdist are sound")
    if failed:
        return 1
    try:
        print(f"a clean environment finds: {check_installed(wheels)}")
    except Failure as failure:
        print(f"clean environment: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
