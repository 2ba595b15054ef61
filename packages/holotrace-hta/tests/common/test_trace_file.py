"""Trace files by rank, and functions that read and write whole files."""

from __future__ import annotations

import pytest

from holotrace.errors import NotATraceError, TraceNotFoundError
from holotrace.testing.builder import TraceBuilder
from hta.common import trace_file


@pytest.fixture
def files(tmp_path) -> dict[int, str]:
    """Write the files of ranks 1 and 4, and a file that is not a trace."""
    builder = TraceBuilder()
    for rank in (1, 4):
        builder.rank(rank).operator("a", start_us=0.5, duration_us=1)
    paths = builder.write(tmp_path)
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    return dict(zip((1, 4), map(str, paths), strict=True))


def test_files_are_found_by_rank(files, tmp_path) -> None:
    """Files are assigned to ranks 1 and 4, from a folder or from a list of files."""
    assert trace_file.get_trace_files(str(tmp_path)) == files
    assert trace_file.create_rank_to_trace_dict_from_dir(str(tmp_path)) == (True, files)
    assert trace_file.create_rank_to_trace_dict([files[4]]) == (True, {4: files[4]})
    assert trace_file.create_rank_to_trace_dict_from_dir(str(tmp_path / "nothing")) == (False, {})


@pytest.mark.parametrize("name", ["copy.json", "new/copy.json.gz"])
def test_a_file_is_written_and_read(files, tmp_path, name) -> None:
    """`write_trace` compresses files whose names end in `.gz`, creates the folder and replaces an existing file."""
    target = tmp_path / name
    trace = trace_file.read_trace(files[1])
    trace_file.write_trace(trace, str(target))
    assert trace_file.read_trace(str(target)) == trace
    assert target.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    trace_file.write_trace({"traceEvents": []}, str(target))
    assert trace_file.read_trace(str(target)) == {"traceEvents": []}


def test_a_file_gets_another_rank(files) -> None:
    """`update_trace_rank` changes `distributedInfo.rank` and nothing else."""
    before = trace_file.read_trace(files[4])
    trace_file.update_trace_rank(files[4], 7)
    after = trace_file.read_trace(files[4])
    assert after["distributedInfo"] == {**before["distributedInfo"], "rank": 7}
    assert after["traceEvents"] == before["traceEvents"]
    assert trace_file.create_rank_to_trace_dict([files[4]])[1] == {7: files[4]}


def test_a_file_that_cannot_be_read_is_an_error(tmp_path) -> None:
    """A missing file and a file that is not JSON raise different errors."""
    (tmp_path / "broken.json").write_text('{"traceEvents": [', encoding="utf-8")
    with pytest.raises(NotATraceError, match="holotrace check"):
        trace_file.read_trace(str(tmp_path / "broken.json"))
    with pytest.raises(TraceNotFoundError, match="nothing"):
        trace_file.read_trace(str(tmp_path / "nothing.json"))
