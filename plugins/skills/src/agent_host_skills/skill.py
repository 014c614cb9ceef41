"""A skill: the rules of the Agent Skills format, and the reading of one folder by them.

Every problem of a skill is told at once, and costs that skill alone. Nothing of it is run. Where
skills are looked for is not known here.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent_host_skills.frontmatter import Head, HeadError, parse_head, split_head
from agent_host_skills.package import Package, PackageFile, describe_os_error
from agent_host_skills.problems import Loss, Problem

__all__ = [
    "MAX_DESCRIPTION",
    "MAX_FILE_BYTES",
    "MAX_NAME",
    "SKILL_FILE",
    "Skill",
    "decode_text",
    "find_hidden_characters",
    "read_skill",
]

SKILL_FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
#: The largest SKILL.md, and the largest other file that is read at all.
MAX_FILE_BYTES = 1 << 20
#: What the format recommends.
_ADVISED_LINES = 500
#: How many files of a skill, and how many folders below one another, are looked at.
MAX_FILES = 1_000
MAX_DEPTH = 8

_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it was found. ``files`` are those that may be read, by their paths in its folder.

    ``plugin`` is the name of the Agent Plugins package that it is part of, if it is.
    """

    name: str
    description: str
    license: str
    compatibility: str
    metadata: Mapping[str, str]
    allowed_tools: str
    package: Package
    folder: tuple[str, ...]
    files: Mapping[str, PackageFile]
    plugin: str | None = None

    @property
    def path(self) -> str:
        """Its folder, for people."""
        return self.package.path(self.folder)


def read_skill(
    package: Package, folder: tuple[str, ...], folder_name: str, plugin: str | None = None
) -> tuple[Skill | None, list[Problem]]:
    """The skill in a folder of a package, None if it breaks a rule; and all that is wrong.

    ``folder_name`` is what the folder is called where it was found, which may be by a link.
    """
    file = package.path((*folder, SKILL_FILE))
    try:
        found = package.find_file((*folder, SKILL_FILE))
        data, _ = package.read(found, MAX_FILE_BYTES + 1)
    except OSError as error:
        return None, [Problem(file, describe_os_error(error), lost="skill")]
    if len(data) > MAX_FILE_BYTES:
        what, hint = f"has more than {MAX_FILE_BYTES} bytes", "move parts of it to files beside it"
        return None, [Problem(file, what, hint, lost="skill")]
    try:
        text = decode_text(data)
        yaml_text, body = split_head(text)
        head = parse_head(yaml_text)
    except UnicodeDecodeError:
        return None, [Problem(file, "is not UTF-8", "save it as UTF-8", lost="skill")]
    except HeadError as error:
        return None, [Problem(file, error.message, error.hint, line=error.line, lost="skill")]
    files, left_out = find_files(package, folder)
    problems = [
        *_check_fields(file, head, folder_name),
        *left_out,
        *_advise(file, body, text.count("\n") - body.count("\n")),
    ]
    if any(problem.lost == "skill" for problem in problems):
        return None, problems
    fields = head.fields
    metadata = fields.get("metadata")
    skill = Skill(
        name=str(fields["name"]),
        description=str(fields["description"]).strip(),
        license=str(fields.get("license", "")),
        compatibility=str(fields.get("compatibility", "")),
        metadata={k: str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {},
        allowed_tools=str(fields.get("allowed-tools", "")),
        package=package,
        folder=folder,
        files=files,
        plugin=plugin,
    )
    return skill, problems


def decode_text(data: bytes) -> str:
    """UTF-8 with or without a mark, with the line ends of a text file."""
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def find_hidden_characters(text: str, *, keep: str = "\n\t") -> Iterator[tuple[int, str]]:
    """What nobody sees or what turns the order of letters around, with the number of its line."""
    if text.isascii() and text.isprintable():
        return
    line = 1
    for letter in text:
        if letter == "\n":
            line += 1
        if letter not in keep and _is_hidden(letter):
            yield line, f"U+{ord(letter):04X}"


def _is_hidden(letter: str) -> bool:
    code = ord(letter)
    return (
        unicodedata.category(letter) in ("Cc", "Cs")
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xE0000 <= code <= 0xE01EF
    )


def find_files(
    package: Package, folder: tuple[str, ...]
) -> tuple[dict[str, PackageFile], list[Problem]]:
    """The files of a skill by their paths in it, and what is none of them and why.

    Names that begin with a dot are no part of a skill.
    """
    found: dict[str, PackageFile] = {}
    problems: list[Problem] = []
    base = package.path(folder)
    start = package.resolve(folder)
    seen = {start}
    waiting: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), start)]

    def leave_out(names: tuple[str, ...], why: str, hint: str = "") -> None:
        problems.append(Problem(os.path.join(base, *names), why, hint, lost="file"))

    while waiting:
        names, real = waiting.pop()
        try:
            items = sorted(package.items(real), key=lambda item: item.name)
        except OSError as error:
            leave_out(names, describe_os_error(error))
            continue
        for item in items:
            inside = (*names, item.name)
            if item.name.startswith("."):
                continue
            if not item.name.isprintable():
                leave_out(inside, "has a name with characters that cannot be shown", "rename it")
            elif item.folder is not None and len(inside) > MAX_DEPTH:
                leave_out(inside, f"is more than {MAX_DEPTH} folders deep")
            elif item.folder is not None:
                # A link may lead back to what was looked at already.
                if item.folder not in seen:
                    seen.add(item.folder)
                    waiting.append((inside, item.folder))
            elif item.file is None:
                leave_out(inside, item.problem)
            elif len(found) >= MAX_FILES:
                leave_out(inside, f"and what follows is left out: {MAX_FILES} files are enough")
                return found, problems
            else:
                found["/".join(inside)] = item.file
    return dict(sorted(found.items())), problems


def _check_fields(file: str, head: Head, folder_name: str) -> Iterator[Problem]:
    fields = head.fields

    def wrong(key: str, message: str, hint: str = "", lost: Loss = "skill") -> Problem:
        return Problem(file, message, hint, key, head.lines.get(key), lost)

    for key in ("name", "description"):
        if key not in fields:
            yield Problem(file, "is missing", f"add a line '{key}: …'", key, lost="skill")
    for key, value in fields.items():
        if key not in _FIELDS:
            shown = key if len(key) <= MAX_NAME else f"{key[:MAX_NAME]}…"
            yield Problem(
                file,
                "is no field of a skill",
                "put it under 'metadata'; other clients may refuse it",
                shown,
                head.lines.get(key),
            )
        elif key == "metadata":
            if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
                yield wrong(key, "is no mapping of texts to texts", "write 'key: value' below it")
        elif not isinstance(value, str):
            yield wrong(key, "is no text", "write one text, in quotes if need be")
        elif key == "name":
            yield from (wrong(key, *each) for each in _name_problems(value, folder_name))
        elif key == "description":
            yield from (wrong(key, *each) for each in _description_problems(value))
        elif key == "compatibility" and not 1 <= len(value.strip()) <= MAX_COMPATIBILITY:
            yield wrong(key, f"has {len(value)} characters", f"write 1 to {MAX_COMPATIBILITY}")


def _name_problems(name: str, folder_name: str) -> Iterator[tuple[str, str]]:
    if len(name) > MAX_NAME:
        yield f"has {len(name)} characters", f"at most {MAX_NAME} are allowed"
    if not _NAME.fullmatch(name):
        yield (
            "is not of lower-case letters a-z, digits and single hyphens between them",
            "write it like 'pdf-forms'",
        )
    if name != folder_name:
        yield "is not the name of the skill's folder", "rename one of the two"


def _description_problems(text: str) -> Iterator[tuple[str, str]]:
    if not text.strip():
        yield "is empty", "say what the skill does and when to use it"
    if len(text) > MAX_DESCRIPTION:
        yield f"has {len(text)} characters", f"at most {MAX_DESCRIPTION} are allowed"
    hidden = [*dict.fromkeys(code for _, code in find_hidden_characters(text))]
    if hidden:
        yield f"has characters that nobody sees: {', '.join(hidden[:5])}", "remove them"


def _advise(file: str, body: str, lines_before: int) -> Iterator[Problem]:
    """What no rule forbids and an author wants to know."""
    if not body.strip():
        yield Problem(file, "has no instructions", "write them below the second '---'", advice=True)
    lines = body.count("\n") + 1
    if lines > _ADVISED_LINES:
        what = f"has {lines} lines of instructions; at most {_ADVISED_LINES} are recommended"
        yield Problem(file, what, "move details to files beside it", advice=True)
    hidden = next(find_hidden_characters(body), None)
    if hidden is not None:
        line, code = hidden
        what = f"has characters that nobody sees, such as {code}"
        hint = "remove them; agent-host skills show makes them visible"
        yield Problem(file, what, hint, line=line + lines_before, advice=True)
