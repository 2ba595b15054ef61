"""`file_health` describes the health of a job's files."""

from __future__ import annotations

import gzip

import pytest

import holotrace
from holotrace.ingest.file_health import FileHealth, file_health
from holotrace.store.health import Finding
from holotrace.testing.builder import TraceBuilder


def health_of(path) -> FileHealth:
    """Return the health of one file."""
    return file_health(holotrace.open_trace(path, cache=False))[0]


def test_a_clean_file_is_described(tmp_path) -> None:
    """The health of a file includes format, size, events, GPU work, recording options, rank and origin of the rank."""
    builder = TraceBuilder().rank(3).header(record_shapes=1, with_stack=1)
    content = builder.kernel("gemm", start_us=0, duration_us=1, launch_us=-1).json(3)
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(content))
    assert health_of(path) == FileHealth(
        path=str(path),
        rank=3,
        rank_origin="distributedInfo",
        format="gzip",
        bytes_read=path.stat().st_size,
        bytes_decoded=len(content),
        event_count=4,
        gpu_event_count=1,
        options=("record_shapes", "with_stack"),
    )


def test_the_origin_of_a_rank_is_reported(tmp_path) -> None:
    """The health of each file says whether its rank was read from the file name or is the next free number."""
    content = TraceBuilder().header(distributedInfo=None).kernel("gemm", start_us=0, duration_us=1).json()
    for name in ("rank-5.json", "some.json"):
        (tmp_path / name).write_bytes(content)
    origins = {file.rank: file.rank_origin for file in file_health(holotrace.open_trace(tmp_path, cache=False))}
    assert origins == {0: "given or next free number", 5: "file name"}


def test_collectives_name_the_rank_of_a_file_without_one(tmp_path) -> None:
    """If neither header nor name states a rank, the rank comes from the collectives."""
    args = {"Rank": 6, "Collective name": "allreduce", "Process Group Name": "0"}
    builder = TraceBuilder().header(distributedInfo=None).kernel("nccl", start_us=0, duration_us=1, args=args)
    (tmp_path / "some.json").write_bytes(builder.json())
    file = health_of(tmp_path)
    assert (file.rank, file.rank_origin) == (6, "collectives")


def test_a_loss_is_reported(tmp_path) -> None:
    """A truncated file has the state `with losses` and no error."""
    content = TraceBuilder().kernel("a", start_us=0, duration_us=1).kernel("b", start_us=2, duration_us=1).json()
    (tmp_path / "rank0.json").write_bytes(content[: content.index(b'"b"')])
    file = health_of(tmp_path / "rank0.json")
    assert (file.state, file.error) == ("with losses", None)


def test_an_unreadable_file_does_not_affect_the_others(tmp_path) -> None:
    """One of two files is deleted: its state is `unreadable` with an error, and the other file stays `clean`."""
    paths = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=1)
        .rank(1)
        .kernel("a", start_us=0, duration_us=1)
        .write(tmp_path)
    )
    trace = holotrace.open_trace(dict(enumerate(paths)), cache=False)
    paths[1].unlink()
    good, bad = file_health(trace)
    assert (good.state, bad.state) == ("clean", "unreadable")
    assert bad.error is not None
    assert bad.rank_origin == "file name"


@pytest.mark.parametrize(
    ("severities", "state"),
    [([], "clean"), (["note"], "clean"), (["note", "repaired"], "repaired"), (["repaired", "dropped"], "with losses")],
)
def test_the_most_severe_finding_determines_the_state(severities, state) -> None:
    """With notes only, a file is `clean`; with repairs, it is `repaired`; with dropped events, it is `with losses`."""
    findings = tuple(Finding(kind="k", severity=severity, count=1) for severity in severities)
    assert FileHealth("a.json", 0, "file name", findings=findings).state == state
