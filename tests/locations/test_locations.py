"""Tests of paths and URLs, of the secrets in URLs, and of the status and errors of remote files."""

from __future__ import annotations

import pickle
from datetime import datetime, timezone
from pathlib import Path

import pytest

from holotrace.errors import InvalidOptionError
from holotrace.locations import RemotePath, Status, address_text, is_url, located, name_of, secrets
from holotrace.locations.filesystems import TIMEOUT_VARIABLE, opened_filesystem, scheme_of, translated
from holotrace.locations.secrets import NO_SECRET, redacted, without_secret
from holotrace.locations.status import remote_status
from holotrace.locations.unreachable import explained_errors, is_final


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test without the secrets that other tests have registered."""
    monkeypatch.setattr(secrets, "_known", {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/a.json", True),
        ("https://a.blob.core.windows.net/c/a.json", True),
        ("zip://a.json::s3://bucket/a.zip", True),
        ("simplecache::s3://bucket/a.json", True),
        ("/home/me/a.json", False),
        ("C:\\traces\\a.json", False),
        ("C:/traces", False),
        ("file:///home/me/a.json", False),
        ("rank:0.json", False),
        ("", False),
    ],
)
def test_urls_differ_from_paths(text, expected) -> None:
    """A string with a scheme is a URL; a drive letter is not a scheme, and `file://` means a path."""
    assert is_url(text) is expected
    assert isinstance(located(text), RemotePath) is expected


def test_a_path_stays_a_path() -> None:
    """A path stays as written, except that `~` and `file://` are replaced."""
    assert located("a/b.json") == Path("a/b.json")
    assert address_text("./a//b.json") == "./a//b.json"
    assert address_text("~/a.json") == str(Path.home() / "a.json")
    assert address_text("file://localhost/a%20b.json") == "/a b.json"


@pytest.mark.parametrize(
    ("url", "name", "parent", "child"),
    [
        ("s3://bucket/job/a.json", "a.json", "s3://bucket/job", "s3://bucket/job/a.json/x"),
        ("s3://bucket/job/", "job", "s3://bucket", "s3://bucket/job/x"),
        ("s3://bucket", "bucket", "s3://bucket", "s3://bucket/x"),
        ("memory://a.json", "a.json", "memory://a.json", "memory://a.json/x"),
        ("hdfs://host:8020/job/a.json", "a.json", "hdfs://host:8020/job", "hdfs://host:8020/job/a.json/x"),
        ("https://host/job/", "job", "https://host/", "https://host/job/x"),
        ("https://host/job/a.json?v=2", "a.json", "https://host/job/?v=2", "https://host/job/a.json/x?v=2"),
        ("https://a.blob.core.windows.net/c/job/", "job", "https://a.blob.core.windows.net/c", None),
        ("zip://job/a.json::s3://b/t.zip", "a.json", "zip://job::s3://b/t.zip", "zip://job/a.json/x::s3://b/t.zip"),
    ],
)
def test_a_url_has_the_parts_of_a_path(url, name, parent, child) -> None:
    """A URL's name is the last part of its path; its parent and children keep the query and the part after `::`."""
    path = located(url)
    assert (path.name, str(path.parent), name_of(url)) == (name, parent, name)
    assert child is None or str(path / "x") == child


def test_the_suffix_begins_at_the_last_dot() -> None:
    """`rank0.json.gz` has the suffix `.gz` and the stem `rank0.json`, as in `pathlib`."""
    path = located("s3://bucket/rank0.json.gz")
    assert (path.suffix, path.stem, str(path.with_name("b"))) == (".gz", "rank0.json", "s3://bucket/b")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "https://a.blob.core.windows.net/c/x.json?sv=2024&sp=r&sig=ab%2Bcd",
            "https://a.blob.core.windows.net/c/x.json",
        ),
        ("https://b.s3.amazonaws.com/x?X-Amz-Credential=AKIA&X-Amz-Signature=12", "https://b.s3.amazonaws.com/x"),
        ("https://me:secret@host/x.json", "https://host/x.json"),
        ("https://host/x.json?download=1", "https://host/x.json?download=1"),
        ("az://c/x.json?sv=2024&sig=abc", "az://c/x.json"),
        ("s3://bucket/rank?.json", "s3://bucket/rank?.json"),
        ("github://owner:repository@main/x.json", "github://owner:repository@main/x.json"),
        ("abfs://container@account.dfs.core.windows.net/x", "abfs://container@account.dfs.core.windows.net/x"),
    ],
)
def test_secrets_are_cut_out_of_addresses(url, shown) -> None:
    """Signatures, tokens and passwords are removed from an address before it is shown; `?` and `@` in names stay."""
    assert address_text(url) == shown
    assert (without_secret(url)[1] == NO_SECRET) is (url == shown)


def test_a_url_without_its_secret_still_opens() -> None:
    """A URL's secret is also used for files below the URL, even after pickling, but not for files beside the URL."""
    path = located("https://host/job/?sig=abcdefgh")
    assert str(path) == repr(str(path)).strip("'") == "https://host/job/"
    assert located("https://host/job/a.json").secret.query == "sig=abcdefgh"
    assert located("https://host/jobs").secret == NO_SECRET
    sent = pickle.dumps(path)
    secrets._known.clear()
    assert located("https://host/job/").secret == NO_SECRET
    assert pickle.loads(sent) == path  # noqa: S301 -- the test pickled it
    assert located("https://host/job/a.json").secret.query == "sig=abcdefgh"
    assert "abcdefgh" not in repr(path)


def test_secrets_are_removed_from_messages_of_libraries(monkeypatch) -> None:
    """Secrets in addresses or the environment, and whatever looks like a signature, are removed from messages."""
    located("https://host/job/?sv=2024-01-01&sig=abcdefgh")
    located("https://me:geheimnis@host/x")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=Eby8vdM02xNO==;")
    text = (
        "no: abcdefgh geheimnis AccountName=a;AccountKey=Eby8vdM02xNO==; https://h/x?sig=other123&sp=r AccountKey=zzz;"
    )
    message = redacted(text)
    assert not any(secret in message for secret in ("abcdefgh", "geheimnis", "Eby8", "other123", "zzz"))
    assert "sp=r" in message


def test_names_decide_what_is_inside_a_folder() -> None:
    """The folder `job` contains all files below it, but none in `job2`, in other buckets, or with `..` in the path."""
    root = located("s3://bucket/job")
    assert located("s3://bucket/job/a/b.json").is_inside(root)
    assert root.is_inside(root)
    for other in ("s3://bucket/job2/a.json", "s3://other/job/a.json", "s3://bucket/job/../a.json", "gs://bucket/job/a"):
        assert not located(other).is_inside(root)
    assert located("https://host/job/a.json").is_inside(located("https://host/job/"))


def test_paths_relative_to_a_folder() -> None:
    """`below` returns a path relative to a folder; in a chained URL, it uses the part before `::`."""
    assert located("s3://bucket/log/a/b").below(located("s3://bucket/log")) == "a/b"
    assert located("zip://log/a::/x.zip").below(located("zip://log::/x.zip")) == "a"
    assert located("s3://bucket").below(located("s3://bucket")) == ""


def test_azure_blobs_may_be_given_as_web_addresses() -> None:
    """A web address of an Azure blob becomes an `az://` path; other web addresses stay unchanged."""
    url = "https://account.blob.core.windows.net/container/job/a.json"
    assert translated(url) == "az://container/job/a.json"
    assert scheme_of(f"zip://a::{url}") == "az"
    assert (
        translated("https://elsewhere.example/blob.core.windows.net/a")
        == "https://elsewhere.example/blob.core.windows.net/a"
    )


def test_a_changed_credential_makes_a_new_file_system(monkeypatch) -> None:
    """A file system and its connections are reused until the credentials change."""
    first, path = opened_filesystem("memory://a/b.json", NO_SECRET)
    assert path == "/a/b.json"
    assert opened_filesystem("memory://a/c.json", NO_SECRET)[0] is first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    assert opened_filesystem("memory://a/b.json", NO_SECRET)[0] is not first


def test_a_timeout_must_be_a_number(monkeypatch) -> None:
    """HOLOTRACE_TIMEOUT_S='soon' raises an error that names the variable and its value."""
    monkeypatch.setenv(TIMEOUT_VARIABLE, "soon")
    with pytest.raises(InvalidOptionError, match=r"^HOLOTRACE_TIMEOUT_S='soon' is not a number of seconds$"):
        located("https://host/a.json").exists()


TIME = datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
TIME_NS = 1_714_979_289 * 10**9


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"size": 5, "LastModified": TIME, "ETag": '"abc"'}, Status(5, TIME_NS, "abc")),
        ({"size": 5, "last_modified": TIME, "etag": "0x8D"}, Status(5, TIME_NS, "0x8D")),
        ({"size": 5, "updated": "2024-05-06T07:08:09Z", "generation": "17"}, Status(5, TIME_NS, "17")),
        ({"size": 5, "mtime": TIME_NS / 10**9}, Status(5, TIME_NS)),
        ({"size": 5, "modificationTime": TIME_NS // 10**6}, Status(5, TIME_NS)),
        (
            {"size": None, "Last-Modified": "Mon, 06 May 2024 07:08:09 GMT", "ETag": 'W/"x"'},
            Status(None, TIME_NS, "x"),
        ),
        ({"size": 5, "created": TIME.replace(tzinfo=None)}, Status(5, TIME_NS)),
        ({"size": 5, "LastModified": "once upon a time"}, Status(5)),
    ],
)
def test_the_status_is_read_from_the_records_of_every_store(entry, expected) -> None:
    """Storage services use different names for size, time and version; a missing or invalid value is left unknown."""
    assert remote_status(entry) == expected


class RefusedError(Exception):
    """A server's response when it refuses access."""

    status = 403


class OverloadedError(Exception):
    """The response of a server that is overloaded."""

    status_code = 503


def test_final_errors_are_not_retried() -> None:
    """Lost connections and overloaded servers cause a retry; refused access and missing files do not."""
    assert all(map(is_final, (RefusedError(), FileNotFoundError(), PermissionError(), ValueError("bad credentials"))))
    assert not any(map(is_final, (OverloadedError(), ConnectionResetError(), TimeoutError(), ValueError("cut"))))


def test_an_error_becomes_one_line() -> None:
    """An error shows only the first line, without secrets; if access was refused, it also says how to get access."""
    path = located("s3://bucket/a.json?sig=abcdefgh")
    with (
        pytest.raises(OSError, match=r"^s3://bucket/a.json cannot be read: it broke at …$"),
        explained_errors(path),
    ):
        raise OSError(*["it broke at sig=abcdefgh\nat line 3\nat line 5"])
    with (
        pytest.raises(OSError, match=r"access was refused \(go away\); set AWS_"),
        explained_errors(path),
    ):
        raise RefusedError(*["go away"])
