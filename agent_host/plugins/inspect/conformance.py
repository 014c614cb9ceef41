"""What a package proves of its quality: ``conformance.json``, and whether it is of these files.

The kit writes the file beside the descriptor after a run of the package's suites; a wheel carries
it as any file. It says what was tried on which Pythons, and is sealed by two hashes: one of the
package's files, one of its own content. They tell of change, not of who has written it. Owns what
each tier asks of a package; what a suite asks is the kit's to know. Imports nothing of the package.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_hookspecs.descriptor import Descriptor, Entry, QualityTier
from agent_hookspecs.errors import DescriptorError
from agent_hookspecs.values import dataclass
from agent_host.checking import find_problem, json_schema, pydantic_alone
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.descriptor import MAX_BYTES
from agent_host.plugins.inspect.about import CONFORMANCE_NAME, About, about_bundle

__all__ = [
    "CONFORMANCE_NAME",
    "Conformance",
    "Judgement",
    "Standing",
    "TriedPlugin",
    "decode_conformance",
    "digest_files",
    "digest_folder",
    "is_sealed",
    "judge_package",
    "read_conformance",
    "standing_of",
    "tier_problems",
    "write_conformance",
]

#: How the kit is asked for the file.
_COMMAND: Final = "pytest --conformance-tier FILE"
_TIERS: Final[tuple[QualityTier, ...]] = get_args(QualityTier)


with pydantic_alone():

    class TriedPlugin(BaseModel):
        """What came of a plugin's suites. ``tier`` is what they alone can say of it.

        ``lacks`` is what speaks against more.
        """

        model_config = ConfigDict(frozen=True)

        tier: QualityTier | None = None
        passed: int = 0
        failed: int = 0
        skipped: int = 0
        not_claimed: int = 0
        lacks: tuple[str, ...] = ()

    class Conformance(BaseModel):
        """The file. ``files`` is the hash of the package's files, ``sha256`` of all the rest.

        ``types`` names the type checker that found nothing, and is empty if none was run.
        """

        model_config = ConfigDict(frozen=True)

        tier: QualityTier | None = None
        distribution: str = ""
        version: str = ""
        contract: str
        host: str
        kit: str
        pythons: tuple[str, ...] = Field(min_length=1)
        types: str = ""
        plugins: dict[str, TriedPlugin]
        files: str
        sha256: str = ""

    _FILE = TypeAdapter(Conformance)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The tier that a package reaches, if any, and what the next one lacks."""

    tier: QualityTier | None
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What is to be said of a package's tier. ``proved`` is what its file shows of these files."""

    claimed: QualityTier | None
    proved: QualityTier | None
    words: str


# The file ---------------------------------------------------------------------------------------


def read_conformance(file: Path) -> Conformance | None:
    """What the file says; None if there is none."""
    try:
        with open(file, "rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except FileNotFoundError:
        # Nothing is lost: the package proves nothing of itself.
        return None
    except OSError as error:
        raise DescriptorError(
            f"{file} cannot be read: {error.strerror or error}", file=str(file), hint="reinstall it"
        ) from error
    return decode_conformance(raw, str(file))


def decode_conformance(raw: bytes, file: str) -> Conformance:
    """Decode and check the content of ``file``."""
    hint = f"let the kit write it anew: {_COMMAND}"
    if len(raw) > MAX_BYTES:
        raise DescriptorError(
            f"{file} is larger than {MAX_BYTES // 1024} KiB", file=file, hint=hint
        )
    try:
        return _FILE.validate_python(json.loads(raw))
    except ValidationError as error:
        schema = json_schema(_FILE, CONFORMANCE_NAME, "")
        problem = find_problem(error, schema)
        raise DescriptorError(f"{file}: {problem.what}", file=file, hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise DescriptorError(f"{file} is not JSON: {error}", file=file, hint=hint) from error


def write_conformance(file: Path, found: Conformance) -> Conformance:
    """Write the file, sealed; gives what was written."""
    sealed = found.model_copy(update={"sha256": _seal(found)})
    text = json.dumps(sealed.model_dump(mode="json"), indent=1, ensure_ascii=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")
    return sealed


def is_sealed(found: Conformance) -> bool:
    """Whether it is as it was written."""
    return found.sha256 == _seal(found)


def _seal(found: Conformance) -> str:
    content = found.model_dump(mode="json", exclude={"sha256"})
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


# The hashes -------------------------------------------------------------------------------------


def digest_folder(folder: Path) -> str:
    """The hash of a package's files as they are now."""
    return digest_files(_hash_files(folder))


def digest_files(hashes: Iterable[tuple[str, str]]) -> str:
    """The hash of files, each given by its path below the package and its hash as in a RECORD."""
    lines = sorted(f"{path} {hashed}" for path, hashed in hashes if _counts(path))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _hash_files(folder: Path) -> Iterator[tuple[str, str]]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            relative = path.relative_to(folder).as_posix()
            if _counts(relative):
                digest = hashlib.sha256(path.read_bytes()).digest()
                encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                yield relative, f"sha256={encoded}"


def _counts(path: str) -> bool:
    """Whether a file is the package's own: not the seal, and nothing that comes by itself."""
    parts = path.split("/")
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return not hidden and path != CONFORMANCE_NAME and not path.endswith((".pyc", ".pyo"))


# The tiers --------------------------------------------------------------------------------------


def judge_package(
    found: Conformance, descriptor: Descriptor, about: About, folder: Path
) -> Judgement:
    """The tier that a package reaches by what was tried, and by what can be seen without a run."""
    steps = (
        [*_lacking_bronze(found, descriptor)],
        [*_lacking_silver(found, folder)],
        [*_lacking_gold(found, descriptor, about)],
    )
    reached: QualityTier | None = None
    for tier, lacks in zip(_TIERS, steps, strict=True):
        if lacks:
            return Judgement(reached, tuple(lacks))
        reached = tier
    return Judgement(reached, ())


def _lacking_bronze(found: Conformance, descriptor: Descriptor) -> Iterator[str]:
    for key, tried in found.plugins.items():
        if tried.tier is None:
            yield from (f"{key}: {each}" for each in tried.lacks or ("its suite was not passed",))
    for entry in descriptor.entries:
        if not _is_tried(entry, found.plugins, descriptor.entries):
            yield f"{entry.role}:{entry.name}: no suite was run"


def _is_tried(entry: Entry, tried: Mapping[str, TriedPlugin], others: Sequence[Entry]) -> bool:
    """By a suite of its own, of its class under another name, or of the provider that it is for."""
    if f"{entry.role}:{entry.name}" in tried or (entry.stores and f"store:{entry.name}" in tried):
        return True
    return any(
        f"{other.role}:{other.name}" in tried
        and (other.entry == entry.entry or (entry.role, other.role) == ("extension", "provider"))
        for other in others
    )


def _lacking_silver(found: Conformance, folder: Path) -> Iterator[str]:
    if not (folder / "py.typed").is_file():
        yield "the package has no py.typed"
    if not found.types:
        yield "no type checker has passed it: have mypy installed where the kit runs"
    for key, tried in found.plugins.items():
        if tried.tier == "bronze":
            yield from (f"{key}: {each}" for each in tried.lacks)


def _lacking_gold(found: Conformance, descriptor: Descriptor, about: About) -> Iterator[str]:
    untried = [each for each in about.pythons if each not in found.pythons]
    if not about.pythons:
        yield "its classifiers name no Python, so that nobody knows which to try"
    elif untried:
        yield f"it names Pythons on which it was not tried: {', '.join(untried)}"
    for key, tried in found.plugins.items():
        if tried.tier == "silver":
            yield from (f"{key}: {each}" for each in tried.lacks)
    settings = dict.fromkeys(key for entry in descriptor.entries for key in entry.config_schema)
    silent = [key for key in settings if key not in about.readme]
    if not about.readme.strip():
        yield "it has no README"
    elif silent:
        yield f"its README does not name the settings {', '.join(silent)}"


def standing_of(bundle: Bundle) -> Standing:
    """The tier of a bundle, for people: what it claims, and whether that is of these files."""
    descriptor = bundle.descriptor
    claimed = descriptor.tier if descriptor else None
    unproved = Standing(claimed, None, f"claimed {claimed}; nothing proves it" if claimed else "")
    if descriptor is None or not bundle.file:
        return unproved
    folder = Path(bundle.file).parent
    try:
        found = read_conformance(folder / CONFORMANCE_NAME)
    except DescriptorError as error:
        return Standing(claimed, None, f"not known: {error.explain()}")
    if found is None:
        return unproved
    stated = max(claimed, found.tier, key=_rank)
    judged = _judge_anew(found, descriptor, bundle, folder)
    if not judged.tier:
        return Standing(stated, None, f"claimed {stated or 'nothing'}; {judged.lacks[0]}")
    more = f"; {stated} is claimed" if _rank(stated) > _rank(judged.tier) else ""
    return Standing(stated, judged.tier, f"{judged.tier}, of this content{more}")


def _judge_anew(
    found: Conformance, descriptor: Descriptor, bundle: Bundle, folder: Path
) -> Judgement:
    """What the file proves of the files as they are now: nothing, if either has changed."""
    if not is_sealed(found):
        return Judgement(None, (f"{CONFORMANCE_NAME} is not as the kit wrote it",))
    if digest_folder(folder) != found.files:
        return Judgement(None, ("the files have changed since",))
    return judge_package(found, descriptor, about_bundle(bundle), folder)


def tier_problems(bundle: Bundle) -> Iterator[tuple[bool, str]]:
    """What is wrong with what a package says of its tier; whether it is serious, and a sentence."""
    standing = standing_of(bundle)
    if _rank(standing.claimed) > _rank(standing.proved) or standing.words.startswith("not known"):
        carried = (Path(bundle.file).parent / CONFORMANCE_NAME).exists()
        yield carried, f"{standing.words} (let the kit write it anew: {_COMMAND})"


def _rank(tier: QualityTier | None) -> int:
    return _TIERS.index(tier) + 1 if tier else 0
