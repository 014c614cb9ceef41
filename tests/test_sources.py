"""``path:``, ``pkg:`` and ``git+`` sources: what they lead to, and what they refuse."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import SourceError
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.clones import GitSource, parse_git
from agent_host.plugins.sources import bundles_of_sources
from loopback import Peer, Request, make_certificate, serve
from making import POISON, full, run_host, write_package

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def only(source: str, base: Path, cache: Path | None = None) -> Bundle:
    (bundle,) = bundles_of_sources([source], base=base, cache=cache)
    return bundle


def test_a_descriptor_in_a_package_under_the_folder_is_found(tmp_path: Path) -> None:
    for layout in ("flat", "src"):
        root = tmp_path / layout
        packages = root / "src" if layout == "src" else root
        write_package(packages, "pkg_one", descriptor=full("pkg_one", "tool", "one"))
        bundle = only(f"path:{root}", tmp_path)
        assert bundle.problem == ""
        assert (bundle.name, bundle.origin) == ("pkg_one", "path")
        assert bundle.import_root == str(packages)


def test_a_descriptor_at_the_root_says_where_its_packages_are(tmp_path: Path) -> None:
    write_package(tmp_path / "lib", "pkg_one")
    descriptor = tmp_path / "agent_plugin.json"
    descriptor.write_text('{"entries": ["pkg_one.plugin.Plugin"], "subdirectory": "lib"}', "utf-8")
    assert only(f"path:{tmp_path}", tmp_path).import_root == str(tmp_path / "lib")
    descriptor.write_text('{"entries": ["pkg_one.plugin.Plugin"]}', "utf-8")
    assert "is not in" in only(f"path:{tmp_path}", tmp_path).problem


def test_relative_paths_start_at_the_base_and_home_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package(tmp_path / "p", "pkg_one", descriptor=full("pkg_one", "tool", "one"))
    assert only("path:p", tmp_path).problem == ""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert only("path:~/p", Path("/")).problem == ""


def test_several_packages_under_one_folder_are_several_bundles(tmp_path: Path) -> None:
    for name in ("pkg_b", "pkg_a"):
        write_package(tmp_path, name, descriptor=full(name, "tool", name))
    found = bundles_of_sources([f"path:{tmp_path}"], base=tmp_path, cache=None)
    assert [bundle.name for bundle in found] == ["pkg_a", "pkg_b"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("path:absent", "is not a folder"),
        ("path:", "is not a plugin source"),
        ("nonsense", "use path:FOLDER, path:FILE.py, pkg:PACKAGE or git+https://HOST/REPO@COMMIT"),
        ("pkg:no_such_package", "cannot be found on sys.path"),
        ("pkg:json", "has no agent_plugin.json"),
        ("pkg:../..", "cannot be found on sys.path"),
        ("path:" + "x" * 5000, "cannot be read"),
        ("path:a\0b", "path:a"),
        ("git+https://host/repo", "is not a git source"),
    ],
)
def test_what_cannot_be_used_is_a_problem_that_says_what_to_do(
    tmp_path: Path, source: str, words: str
) -> None:
    bundle = only(source, tmp_path)
    assert bundle.descriptor is None
    assert words in bundle.problem
    assert bundle.problem.endswith(")"), "there is a hint"


def test_a_folder_without_a_descriptor_says_so(tmp_path: Path) -> None:
    assert "there is no agent_plugin.json in" in only(f"path:{tmp_path}", tmp_path).problem


@pytest.mark.parametrize("kind", [os.mkfifo, os.mkdir])
def test_a_descriptor_that_is_no_file_is_not_waited_for(tmp_path: Path, kind: Any) -> None:
    kind(tmp_path / "agent_plugin.json")
    assert "there is no agent_plugin.json in" in only(f"path:{tmp_path}", tmp_path).problem


@pytest.mark.parametrize("subdirectory", ["..", "../..", "/etc", "link"])
def test_a_subdirectory_that_leads_out_is_refused(tmp_path: Path, subdirectory: str) -> None:
    root = tmp_path / "root"
    write_package(root, "pkg_one", descriptor={**full("pkg_one", "tool", "one")})
    (root / "link").symlink_to(tmp_path)
    descriptor = {**full("pkg_one", "tool", "one"), "subdirectory": f"../{subdirectory}"}
    if subdirectory == "/etc":
        descriptor["subdirectory"] = "/etc"
    write_package(root, "pkg_one", descriptor=descriptor)
    problem = only(f"path:{root}", tmp_path).problem
    assert "leads out of it" in problem
    assert "keep everything a source names inside its folder" in problem


def test_a_descriptor_that_is_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    real = write_package(tmp_path / "real", "pkg_one", descriptor=full("pkg_one", "tool", "one"))
    package = write_package(tmp_path / "root", "pkg_one")
    (package / "agent_plugin.json").symlink_to(real / "agent_plugin.json")
    assert "leads out of it" in only(f"path:{tmp_path / 'root'}", tmp_path).problem


def test_a_package_that_is_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    write_package(tmp_path / "real", "pkg_one")
    root = tmp_path / "root"
    root.mkdir()
    (root / "pkg_one").symlink_to(tmp_path / "real" / "pkg_one")
    (root / "agent_plugin.json").write_text('{"entries": ["pkg_one.plugin:Plugin"]}', "utf-8")
    assert "leads out of it" in only(f"path:{root}", tmp_path).problem


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    write_package(tmp_path / "real", "pkg_one", descriptor=full("pkg_one", "tool", "one"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert only("path:link", tmp_path).problem == ""


def test_links_in_a_circle_are_a_problem_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert only("path:loop", tmp_path).problem


def test_a_source_may_not_shadow_what_is_installed(tmp_path: Path) -> None:
    write_package(tmp_path, "json", descriptor=full("json", "tool", "one"))
    problem = only(f"path:{tmp_path}", tmp_path).problem
    assert "package 'json'" in problem
    assert "would shadow the one" in problem


def test_no_entry_of_a_source_may_shadow_what_is_installed(tmp_path: Path) -> None:
    entries = ["pkg_one.plugin:Plugin", "sys:Plugin"]
    write_package(tmp_path, "pkg_one", descriptor={"entries": entries})
    assert "package 'sys'" in only(f"path:{tmp_path}", tmp_path).problem


def test_an_installed_package_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, "pkg_named", descriptor=full("pkg_named", "tool", "one"))
    monkeypatch.syspath_prepend(tmp_path)
    bundle = only("pkg:pkg_named", tmp_path)
    assert (bundle.name, bundle.origin, bundle.problem) == ("pkg_named", "pkg", "")
    assert "pkg_named" not in sys.modules


def test_a_source_changes_no_path_and_imports_nothing(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_one", descriptor=full("pkg_one", "tool", "one"), init=POISON)
    before = list(sys.path)
    assert only(f"path:{tmp_path}", tmp_path).problem == ""
    assert sys.path == before


# git ---------------------------------------------------------------------------------------------


def test_a_git_source_is_taken_apart() -> None:
    assert parse_git(f"git+https://host/a/b.git@{COMMIT.upper()}") == GitSource(
        "https://host/a/b.git", COMMIT
    )
    assert parse_git(f"git+ssh://git@host:22/r@{COMMIT}#subdirectory=x/y") == GitSource(
        "ssh://git@host:22/r", COMMIT, "x/y"
    )


@pytest.mark.parametrize(
    "source",
    [
        f"git+http://host/r@{COMMIT}",
        f"git+file:///r@{COMMIT}",
        f"git+ext::sh -c evil@{COMMIT}",
        "git+https://host/r",
        "git+https://host/r@main",
        "git+https://host/r@0123abc",
        f"git+https://--upload-pack=evil/r@{COMMIT}",
        f"git+ssh://-oProxyCommand=evil/r@{COMMIT}",
        f"git+https://user:secret@host/r@{COMMIT}",
        f"git+https://host/r@{COMMIT}#egg=x",
    ],
)
def test_an_unsafe_or_unpinned_git_source_is_refused(source: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_git(source)
    assert caught.value.hint


@pytest.mark.parametrize("credentials", ["user:s3cret", "s3cret", "s3cret:x-oauth-basic"])
def test_credentials_are_never_shown(tmp_path: Path, credentials: str) -> None:
    bundle = only(f"git+https://{credentials}@host.invalid/r@short", tmp_path)
    assert "s3cret" not in repr(bundle)
    assert bundle.origin == "git"


def test_credentials_of_what_is_no_source_are_not_shown_either(tmp_path: Path) -> None:
    bundle = only("https://user:s3cret@host.invalid/r", tmp_path)
    assert "is not a plugin source" in bundle.problem
    assert "s3cret" not in repr(bundle)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *arguments], capture_output=True, check=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A repository that answers at an https address, and its commit."""
    folder = tmp_path / "repository"
    write_package(
        folder / "sub" / "src",
        "pkg_git",
        descriptor=full("pkg_git", "feature", "from_git"),
        source="from agent_hookspecs import FeaturePlugin\n\n"
        "class Plugin(FeaturePlugin):\n    name = 'from_git'\n",
    )
    (folder / "out").symlink_to("/etc")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    # Git itself takes the address to the folder, so that the source is an ordinary one.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{folder.as_uri()}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://host.invalid/repository")
    return "git+https://host.invalid/repository", git(folder, "rev-parse", "HEAD")


def test_a_pinned_commit_is_fetched_once_and_used(
    tmp_path: Path, repository: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, commit = repository
    cache = tmp_path / "cache"
    source = f"{url}@{commit}#subdirectory=sub"
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "misleading"))
    bundle = only(source, tmp_path, cache)
    assert (bundle.problem, bundle.origin, bundle.name) == ("", "git", "pkg_git")
    assert bundle.import_root.startswith(str(cache))
    monkeypatch.setenv("PATH", "")
    assert only(source, tmp_path, cache) == bundle, "no git is needed the second time"
    assert [f.name for f in (cache / "git").iterdir() if f.name.startswith("clone-")] == []


def change_a_file(clone: Path) -> None:
    module = clone / "sub" / "src" / "pkg_git" / "plugin.py"
    found = module.stat()
    module.write_bytes(module.read_bytes().replace(b"from_git", b"from_bad"))
    os.utime(module, ns=(found.st_atime_ns, found.st_mtime_ns))


def add_a_module(clone: Path) -> None:
    (clone / "sub" / "src" / "json.py").write_text("raise SystemExit")


def add_a_folder(clone: Path) -> None:
    (clone / "sub" / "src" / "pkg_git" / "more").mkdir()


def remove_a_file(clone: Path) -> None:
    (clone / "sub" / "src" / "pkg_git" / "__init__.py").unlink()


def put_a_link_there(clone: Path) -> None:
    module = clone / "sub" / "src" / "pkg_git" / "__init__.py"
    module.rename(clone.parent / "elsewhere.py")
    module.symlink_to(clone.parent / "elsewhere.py")


def put_a_pipe_there(clone: Path) -> None:
    remove_a_file(clone)
    os.mkfifo(clone / "sub" / "src" / "pkg_git" / "__init__.py")


def lead_a_link_elsewhere(clone: Path) -> None:
    (clone / "out").unlink()
    (clone / "out").symlink_to("/tmp")


def compile_something_else(clone: Path) -> None:
    other = clone.parent / "other.py"
    other.write_text("raise SystemExit")
    package = clone / "sub" / "src" / "pkg_git"
    py_compile.compile(
        str(other),
        cfile=cache_from_source(str(package / "__init__.py")),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    other.unlink()


def forge_the_commit(clone: Path) -> None:
    """Everything fits but the name of the commit, as after somebody's own commit."""
    commit = git(clone, "rev-parse", "HEAD")
    change_a_file(clone)
    git(clone, "commit", "--quiet", "-am", "two")
    objects, forged = clone / ".git" / "objects", git(clone, "rev-parse", "HEAD")
    os.replace(objects / forged[:2] / forged[2:], objects / commit[:2] / commit[2:])


def pack_the_objects(clone: Path) -> None:
    git(clone, "gc", "--quiet")


@pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (change_a_file, "has another sub/src/pkg_git/plugin.py than commit"),
        (add_a_module, "has sub/src/json.py, which commit"),
        (add_a_folder, "has sub/src/pkg_git/more, which commit"),
        (remove_a_file, "cannot be compared with its commit"),
        (put_a_link_there, "has another sub/src/pkg_git/__init__.py than commit"),
        (put_a_pipe_there, "has another sub/src/pkg_git/__init__.py than commit"),
        (lead_a_link_elsewhere, "has another out than commit"),
        (compile_something_else, "has sub/src/pkg_git/__pycache__/"),
        (forge_the_commit, "is spoilt"),
        (pack_the_objects, "cannot be compared with its commit"),
        (lambda clone: clone.chmod(0o777), "can be changed by other users"),
    ],
)
def test_a_clone_that_is_not_what_was_committed_is_refused(
    tmp_path: Path, repository: tuple[str, str], spoil: Callable[[Path], None], problem: str
) -> None:
    url, commit = repository
    cache = tmp_path / "cache"
    source = f"{url}@{commit}#subdirectory=sub"
    assert only(source, tmp_path, cache).problem == ""
    (clone,) = (cache / "git").iterdir()
    spoil(clone)
    found = only(source, tmp_path, cache).problem
    assert str(clone) in found
    assert problem in found
    shutil.rmtree(clone)
    assert only(source, tmp_path, cache).problem == "", "it is cloned anew"


def test_what_python_compiles_in_a_clone_is_no_change(
    tmp_path: Path, repository: tuple[str, str]
) -> None:
    url, commit = repository
    source = f"{url}@{commit}#subdirectory=sub"
    root = Path(only(source, tmp_path, tmp_path / "cache").import_root)
    assert py_compile.compile(str(root / "pkg_git" / "__init__.py"))
    assert only(source, tmp_path, tmp_path / "cache").problem == ""


def test_files_are_those_of_the_commit_whatever_git_would_make_of_them(
    tmp_path: Path, repository: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = repository
    folder, ran = tmp_path / "repository", tmp_path / "ran"
    (folder / ".gitattributes").write_text("*.txt text eol=crlf\n*.bin filter=evil\n")
    (folder / "lines.txt").write_bytes(b"one\ntwo\n")
    (folder / "file.bin").write_bytes(b"content")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "two")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    monkeypatch.setenv("GIT_CONFIG_KEY_1", "filter.evil.smudge")
    monkeypatch.setenv("GIT_CONFIG_VALUE_1", f"touch {ran}; cat")
    source = f"{url}@{git(folder, 'rev-parse', 'HEAD')}#subdirectory=sub"
    assert only(source, tmp_path, tmp_path / "cache").problem == ""
    (clone,) = (tmp_path / "cache" / "git").iterdir()
    assert (clone / "lines.txt").read_bytes() == b"one\ntwo\n"
    assert not ran.exists()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to be root")
def test_a_clone_of_another_user_is_refused(tmp_path: Path, repository: tuple[str, str]) -> None:
    url, commit = repository
    cache = tmp_path / "cache"
    source = f"{url}@{commit}#subdirectory=sub"
    assert only(source, tmp_path, cache).problem == ""
    (clone,) = (cache / "git").iterdir()
    os.chown(clone, 65534, 65534)
    assert "belongs to another user" in only(source, tmp_path, cache).problem


def test_the_plugin_of_a_git_source_can_be_used(
    tmp_path: Path, repository: tuple[str, str]
) -> None:
    url, commit = repository
    run = run_host(
        "plugins",
        "doctor",
        "--json",
        "--plugin",
        f"{url}@{commit}#subdirectory=sub",
        "--allow",
        "pkg_git",
        cache=tmp_path / "cache",
    )
    assert run.json["problems"] == []


def http_backend(projects: Path) -> Callable[[Peer, Request], None]:
    """Git's own server below ``projects``, for requests one by one."""

    def play(peer: Peer, request: Request) -> None:
        method, target, _ = request.line.split(" ")
        path, _, query = target.partition("?")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(projects),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "HTTP_GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=request.body,
            capture_output=True,
            env=environment,
            check=True,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        status = next((line[8:] for line in lines if line.startswith("Status: ")), "200 OK")
        kept = [f"{line}\r\n" for line in lines if not line.startswith("Status: ")]
        peer.answer(body, status=status, headers="".join(kept))

    return play


@pytest.mark.parametrize("trusted", [True, False])
def test_a_commit_is_fetched_from_a_server_over_https(
    tmp_path: Path, repository: tuple[str, str], monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    _, commit = repository
    certificate, tls = make_certificate(tmp_path)
    if trusted:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    with serve(http_backend(tmp_path), tls) as server:
        source = f"git+{server.url}/repository/.git@{commit}#subdirectory=sub"
        bundle = only(source, tmp_path, tmp_path / "cache")
    if trusted:
        assert (bundle.problem, bundle.origin, bundle.name) == ("", "git", "pkg_git")
        assert any("upload-pack" in request.line for request in server.requests)
    else:
        assert f"git could not fetch {commit[:12]}" in bundle.problem
        assert "certificate" in bundle.problem


def test_a_subdirectory_of_a_repository_stays_inside(
    tmp_path: Path, repository: tuple[str, str]
) -> None:
    url, commit = repository
    for outside in ("..", "out"):
        problem = only(f"{url}@{commit}#subdirectory={outside}", tmp_path, tmp_path / "c").problem
        assert "leads out of it" in problem


def test_a_commit_that_does_not_exist_is_a_problem_with_git_s_words(
    tmp_path: Path, repository: tuple[str, str]
) -> None:
    url, _ = repository
    problem = only(f"{url}@{COMMIT}", tmp_path, tmp_path / "cache").problem
    assert f"git could not fetch {COMMIT[:12]}" in problem
    assert "check the address" in problem


def test_without_git_or_a_cache_the_problem_says_so(
    tmp_path: Path, repository: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, commit = repository
    assert "set AGENT_HOST_HOME" in only(f"{url}@{commit}", tmp_path).problem
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in only(f"{url}@{commit}", tmp_path, tmp_path / "c").problem


def test_a_cache_that_cannot_be_written_is_a_problem_not_an_error(
    tmp_path: Path, repository: tuple[str, str]
) -> None:
    url, commit = repository
    (tmp_path / "file").write_text("", "utf-8")
    assert "cannot be read" in only(f"{url}@{commit}", tmp_path, tmp_path / "file").problem
