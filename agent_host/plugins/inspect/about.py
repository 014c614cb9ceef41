"""What a package says of itself for people: where it lives, its licence, the Pythons it is for.

Taken from the metadata of its distribution, or from the ``pyproject.toml`` around it, so that
authors write nothing twice; the descriptor counts where these are silent. Imports nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agent_hookspecs.descriptor import Descriptor
from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import Bundle

__all__ = ["CONFORMANCE_NAME", "About", "about_bundle", "about_metadata"]

#: The file beside a descriptor that proves a tier.
CONFORMANCE_NAME: Final = "conformance.json"

#: What authors call an address, without spaces, dashes and capitals; the first one counts.
_LABELS = {
    "homepage": ("homepage",),
    "documentation": ("documentation", "docs"),
    "issues": ("issues", "issue", "bugs", "tracker", "issuetracker", "bugtracker"),
}
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"]+")
_PYTHON = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_LICENCE = re.compile(r"License :: (?:OSI Approved :: )?(.+)")


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a package. What nobody says is empty.

    ``python`` is the range of Pythons that it installs on, ``pythons`` those that it names,
    ``contract`` the range of contracts, ``readme`` its text for people.
    """

    homepage: str = ""
    documentation: str = ""
    issues: str = ""
    license: str = ""
    python: str = ""
    pythons: tuple[str, ...] = ()
    contract: str = ""
    readme: str = ""


def about_bundle(bundle: Bundle) -> About:
    """Of a bundle that was found: installed, or in a folder."""
    found = _find_metadata(bundle.distribution) if bundle.distribution else None
    if found is not None:
        return about_metadata(found, bundle.descriptor)
    project = _find_project(bundle)
    if project is None:
        return _about({}, "", "", (), "", bundle.descriptor)
    return _about_project(*project, bundle.descriptor)


def about_metadata(metadata: Any, descriptor: Descriptor | None) -> About:
    """Of a distribution's metadata, as ``email`` and ``importlib.metadata`` read them."""
    urls = {"homepage": str(metadata.get("Home-page") or "")}
    for line in metadata.get_all("Project-URL") or ():
        label, _, url = str(line).partition(",")
        urls[label] = url.strip()
    license_text = str(metadata.get("License-Expression") or metadata.get("License") or "")
    classifiers = [str(each) for each in metadata.get_all("Classifier") or ()]
    readme = metadata.get("Description") or metadata.get_payload()
    python = str(metadata.get("Requires-Python") or "")
    return _about(urls, license_text, python, classifiers, str(readme or ""), descriptor)


def _find_metadata(distribution: str) -> Any:
    from importlib_metadata import PackageNotFoundError, metadata

    try:
        return metadata(distribution)
    except PackageNotFoundError:
        # Nothing is lost: a wheel that was only unpacked is asked for by its folder.
        return None


def _find_project(bundle: Bundle) -> tuple[Path, Mapping[str, Any]] | None:
    """The folder of the project around a bundle, and its ``[project]`` table."""
    # Not above: what is installed needs none of it, and it brings pydantic.
    from agent_host.plugins.project import read_project_file

    start = bundle.file or bundle.import_root
    for folder in [*Path(start).parents][:3] if start else ():
        if (folder / "pyproject.toml").is_file():
            try:
                project = read_project_file(folder).get("project")
            except (OSError, ValueError):
                # Nothing is lost: validate tells what is wrong with the file.
                return None
            return (folder, project) if isinstance(project, dict) else None
    return None


def _about_project(
    folder: Path, project: Mapping[str, Any], descriptor: Descriptor | None
) -> About:
    urls, license_text, readme = (project.get(key) for key in ("urls", "license", "readme"))
    if isinstance(license_text, dict):
        license_text = license_text.get("text")
    if isinstance(readme, dict):
        readme = readme.get("file")
    words = ""
    if isinstance(readme, str) and (folder / readme).is_file():
        words = (folder / readme).read_text(encoding="utf-8", errors="replace")
    return _about(
        {str(label): str(url) for label, url in urls.items()} if isinstance(urls, dict) else {},
        license_text if isinstance(license_text, str) else "",
        str(project.get("requires-python") or ""),
        [str(each) for each in project.get("classifiers") or ()],
        words,
        descriptor,
    )


def _about(
    urls: Mapping[str, str],
    license_text: str,
    python: str,
    classifiers: Iterable[str],
    readme: str,
    descriptor: Descriptor | None,
) -> About:
    said = descriptor or Descriptor(())
    labelled = {re.sub(r"[^a-z0-9]", "", label.lower()): url for label, url in urls.items()}
    found = {
        key: next((url for each in labels if (url := labelled.get(each, ""))), "")
        for key, labels in _LABELS.items()
    }
    # A text of several lines is the licence itself, and not its name.
    named = [license_text.strip()] if "\n" not in license_text.strip() else []
    classified = [*classifiers]
    named += [match[1] for each in classified if (match := _LICENCE.fullmatch(each))]
    return About(
        homepage=_web_address(found["homepage"]) or said.homepage,
        documentation=_web_address(found["documentation"]) or said.documentation,
        issues=_web_address(found["issues"]) or said.issues,
        license=next(filter(None, named), "") or said.license,
        python=python,
        pythons=tuple(match[1] for each in classified if (match := _PYTHON.fullmatch(each))),
        contract=said.api or "",
        readme=readme,
    )


def _web_address(url: str) -> str:
    """The address if it is one that a browser may be given."""
    return url if _WEB_ADDRESS.fullmatch(url) else ""
