"""Copying a trace file can add, change and remove events, and keeps all other text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace import open_trace
from holotrace.errors import InvalidOptionError, UnreadableTraceError
from holotrace.export import event_reader
from holotrace.export.chrome_trace import (
    KEPT,
    LEFT_OUT,
    MARKED,
    NUMBERED,
    Edits,
    _in_order,
    edited,
    rewritten,
    with_events,
)
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder

MARK = {"ph": "i", "name": "mark", "ts": 1, "pid": 0, "tid": 0, "s": "g"}
EVENT = '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1725000000000000.123,"dur":2,"args":{"stream":7}}'


def opened(path: Path) -> RankTrace:
    """Open a file of one rank and return that rank."""
    (rank_trace,) = open_trace(path, cache=False).ranks.values()
    return rank_trace


def file_of(folder: Path, text: str | bytes) -> Path:
    """Write a trace file."""
    path = folder / "rank0.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def unchanged(event: dict) -> dict:
    """Return the event unchanged."""
    return event


@pytest.mark.parametrize("blank", ["", " ", "\n  "])
@pytest.mark.parametrize("events", ["", EVENT, f"{EVENT}, {EVENT}"])
@pytest.mark.parametrize("after", ["", ',"traceName":"]}","list":[1,2]'])
def test_events_are_added_at_the_end_of_the_list_and_the_rest_is_kept(tmp_path, blank, events, after) -> None:
    """A copy keeps everything outside the event list, including lists and strings that look like the list's end."""
    text = f'{{"schemaVersion":1,"other":[{{"a":"]"}}],"traceEvents":[{blank}{events}{blank}]{after}}}'
    source, target = file_of(tmp_path, text), tmp_path / "out.json"

    with_events(opened(source), target, [MARK, json.dumps(MARK)])

    copy, expected = json.loads(target.read_text()), json.loads(text)
    expected["traceEvents"] += [MARK, MARK]
    assert copy == expected
    assert source.read_text() == text


def test_the_text_of_the_events_is_copied_byte_for_byte(tmp_path) -> None:
    """The copy keeps 1725000000000000.123, which a double would turn into .125."""
    source, target = file_of(tmp_path, f'{{"traceEvents":[{EVENT}]}}'), tmp_path / "out.json"
    with_events(opened(source), target, [MARK])
    assert EVENT in target.read_text()


def test_without_new_events_the_text_is_the_same(tmp_path) -> None:
    """A copy with no added events equals the original byte for byte."""
    text = f'{{"traceEvents":[{EVENT}\n]\n}}\n'
    with_events(opened(file_of(tmp_path, text)), tmp_path / "out.json", [])
    assert (tmp_path / "out.json").read_text() == text


@pytest.mark.parametrize("cut", [f"[{EVENT}", f"[{EVENT},", f"[{EVENT},{EVENT[:40]}", f"[{EVENT},{EVENT[:-2]}", "["])
@pytest.mark.parametrize("start", ['{"schemaVersion":1,"traceEvents":', ""])
def test_a_truncated_file_is_closed_after_its_last_complete_event(tmp_path, start, cut) -> None:
    """A copy of a truncated file drops the incomplete event and closes the list and any object around it."""
    path = file_of(tmp_path, start + cut)
    rewritten(path, tmp_path / "out.json", unchanged, [MARK])
    copy = json.loads((tmp_path / "out.json").read_text())
    names = [event["name"] for event in (copy["traceEvents"] if start else copy)]
    assert names == (["mark"] if cut == "[" else ["gemm", "mark"])


def test_adding_to_a_truncated_file_closes_it(tmp_path) -> None:
    """`with_events` drops the incomplete event of a truncated file, adds the new events, and closes the list."""
    rank_trace = opened(file_of(tmp_path, f'{{"traceEvents":[{EVENT},{EVENT[:50]}'))
    assert rank_trace.health.events_end is None
    with_events(rank_trace, tmp_path / "out.json", [MARK])
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["gemm", "mark"]


def test_compressed_files_are_read_and_written(tmp_path) -> None:
    """The first bytes of the source show whether it is compressed; the target is compressed if its name says so."""
    source = tmp_path / "rank0.json.gz"
    source.write_bytes(gzip.compress(f'{{"traceEvents":[{EVENT}]}}'.encode()))
    with_events(opened(source), tmp_path / "out.json.gz", [MARK])
    rewritten(source, tmp_path / "again.json", unchanged, [MARK])
    compressed = json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes()))
    assert compressed == json.loads((tmp_path / "again.json").read_text())


def test_rewriting_changes_drops_and_adds_events(tmp_path) -> None:
    """`rewritten` passes each event of the list, in file order, to a function that may change or drop the event."""
    path = file_of(tmp_path, '{"a":1,"traceEvents":[{"name":"x"},null,{"name":"{]"},{"name":"z"}],"b":[{"name":"y"}]}')
    seen = []

    def change(event: dict) -> dict | None:
        seen.append(event["name"])
        return {"x": event | {"n": 1}, "{]": None}.get(event["name"], event)

    rewritten(path, tmp_path / "out.json", change, [MARK])

    assert seen == ["x", "{]", "z"]
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "a": 1,
        "traceEvents": [{"name": "x", "n": 1}, {"name": "z"}, MARK],
        "b": [{"name": "y"}],
    }


def test_rewritten_numbers_keep_their_digits(tmp_path) -> None:
    """A changed event keeps the digits of its `ts`, which a double would round."""
    path = file_of(tmp_path, f'{{"traceEvents":[{EVENT}]}}')
    rewritten(path, tmp_path / "out.json", lambda event: event | {"name": "né\ud800"})
    text = (tmp_path / "out.json").read_text()
    assert '"ts":1725000000000000.123,' in text
    assert json.loads(text)["traceEvents"][0]["name"] == "né\ud800"


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_rewriting_does_not_depend_on_where_pieces_of_the_file_end(tmp_path, monkeypatch, piece) -> None:
    """The copy is correct even if a chunk of the reader ends within a number, an escape or a multi-byte character."""
    events = [{"name": 'é\\n"', "v": [1, -2.5e-3, True, None]}, {"n": 12345.678, "nested": {"a": [{"b": "}]"}]}}]
    text = json.dumps({"k": {"z": [1, 2]}, "traceEvents": events, "after": "é"}, ensure_ascii=False)
    monkeypatch.setattr("holotrace.export.trace_text.PIECE", piece)
    rewritten(file_of(tmp_path, text), tmp_path / "out.json", unchanged)
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(text)


GAPS = {
    "in a name": '{"ph":"X","name":"a}, {b"},{"ph":"i","name":"}, {"}',
    "in the args": '{"args":{"list":[{"a":1}, {"b":[{"c":2},{"d":3}]}]},"ph":"X"}',
    "in no object": '{"name":"a"},[{"b":1},{"c":2}],7,{"name":"d"}',
    "twice": '{"name":"a"},,{"name":"b"} , {"name":"c"},',
}


@pytest.mark.parametrize("events", GAPS.values(), ids=GAPS)
@pytest.mark.parametrize("after", ["", ',"other":[{"a":1}, {"b":2}]'])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_text_that_looks_like_a_gap_between_events(tmp_path, monkeypatch, events, after, piece) -> None:
    """`}, {` inside a string or args does not split an event, whatever the chunk size."""
    monkeypatch.setattr("holotrace.export.trace_text.PIECE", piece)
    text = f'{{"traceEvents":[{events}]{after}}}'
    seen = []
    rewritten(file_of(tmp_path, text), tmp_path / "out.json", lambda event: seen.append(event) or event)

    expected = json.loads(text.replace(",,", ",").replace(",]", "]"))
    objects = [event for event in expected["traceEvents"] if isinstance(event, dict)]
    assert seen == objects
    assert json.loads((tmp_path / "out.json").read_text()) == expected | {"traceEvents": objects}


@pytest.mark.parametrize("text", ['{"traceEvents":[{"a":1,"b"2}],"x":"' + "x" * 99 + '"}', '{"a":1}', '{"a"1}', ""])
def test_invalid_json_is_an_error_and_leaves_nothing_behind(tmp_path, text) -> None:
    """For invalid JSON, the error names the file and `holotrace check`; no partial copy remains."""
    path = file_of(tmp_path, text)
    with pytest.raises(UnreadableTraceError, match=r"rank0\.json cannot be rewritten: .*holotrace check"):
        rewritten(path, tmp_path / "out.json", unchanged)
    assert [file.name for file in tmp_path.iterdir()] == ["rank0.json"]


def test_a_value_without_an_end_does_not_fill_the_memory(tmp_path, monkeypatch) -> None:
    """An unterminated string of 5,000 characters raises an error when it exceeds the limit of 1,000."""
    monkeypatch.setattr(event_reader, "LONGEST_VALUE", 1_000)
    monkeypatch.setattr("holotrace.export.trace_text.PIECE", 100)
    path = file_of(tmp_path, '{"traceEvents":[{"a":"' + "x" * 5_000)
    with pytest.raises(UnreadableTraceError, match="unterminated string"):
        rewritten(path, tmp_path / "out.json", unchanged)


def test_nothing_is_overwritten_unless_requested(tmp_path) -> None:
    """An existing target is kept, and an error is raised; `overwrite=True` replaces the target."""
    rank_trace, target = opened(file_of(tmp_path, f"[{EVENT}]")), tmp_path / "out.json"
    target.write_text("mine")
    with pytest.raises(InvalidOptionError, match=r"out\.json already exists"):
        with_events(rank_trace, target, [MARK])
    assert target.read_text() == "mine"
    with_events(rank_trace, target, [MARK], overwrite=True)
    assert len(json.loads(target.read_text())) == 2


@pytest.mark.parametrize("target", ["missing/out.json", ""])
def test_a_folder_that_cannot_take_the_file_is_an_error(tmp_path, target) -> None:
    """A target in a missing folder, or a target that is a folder, raises an error."""
    with pytest.raises(InvalidOptionError, match="folder"):
        with_events(opened(file_of(tmp_path, f"[{EVENT}]")), tmp_path / target, [MARK])


def test_an_error_while_writing_keeps_the_old_file(tmp_path) -> None:
    """If an event cannot be generated, the existing target is kept and no partial file remains."""
    rank_trace, target = opened(file_of(tmp_path, f"[{EVENT}]")), tmp_path / "out.json"
    target.write_text("mine")
    with pytest.raises(ZeroDivisionError):
        with_events(rank_trace, target, ({"n": 1 // 0} for _ in range(1)), overwrite=True)
    assert target.read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "rank0.json"]


def test_a_changed_source_is_an_error(tmp_path) -> None:
    """If the source has changed since it was opened, the error says so."""
    path = file_of(tmp_path, f"[{EVENT}]")
    rank_trace = opened(path)
    assert rank_trace.health.events_end
    for text in (f"[{EVENT},{EVENT}]", "[]"):
        path.write_text(text)
        with pytest.raises(UnreadableTraceError, match="has changed"):
            with_events(rank_trace, tmp_path / "out.json", [MARK])


def test_a_missing_source_is_an_error(tmp_path) -> None:
    """Rewriting a missing file raises the same error as opening one."""
    with pytest.raises(UnreadableTraceError, match="cannot be read"):
        rewritten(tmp_path / "none.json", tmp_path / "out.json", unchanged)


def test_zstd_is_read_if_a_module_can_decompress_it(tmp_path, monkeypatch) -> None:
    """Without a module that decompresses zstd, the error says how to decompress the file and what to install."""
    monkeypatch.setattr("holotrace.export.trace_text._ZSTD_READERS", ("no_such_module", "nor_this"))
    with pytest.raises(InvalidOptionError, match=r"zstd -d.*nor_this"):
        rewritten(file_of(tmp_path, b"\x28\xb5\x2f\xfd0000"), tmp_path / "out.json", unchanged)


def test_the_copy_opens_like_the_original(tmp_path) -> None:
    """The opened copy has the original's events and times, plus the added mark."""
    (path,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5, launch_us=-3).write(tmp_path / "job")
    with_events(opened(path), tmp_path / "copy.json.gz", [MARK])
    before, after = (opened(file).table("events") for file in (path, tmp_path / "copy.json.gz"))
    assert after["start_ns"].to_list()[: len(before)] == before["start_ns"].to_list()
    assert len(after) == len(before) + 1


def edits(*fates: tuple[int, int] | int, texts: Sequence[str] = ('"index":1',)) -> Edits:
    """Return edits for the first events, one argument per event: an action such as KEPT, or (action, value)."""
    pairs = [fate if isinstance(fate, tuple) else (fate, 0) for fate in fates]
    return Edits(np.array([fate for fate, _ in pairs], np.uint8), np.array([n for _, n in pairs], np.uint32), texts)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_edited_copy_keeps_marks_and_drops_events(tmp_path, ending) -> None:
    """Unchanged events, even after the last edit, and the text around the event list are copied byte for byte."""
    kept = '{ "ph":"i", "name":"k\\"}" ,"pid":0, "tid":0,"ts":1725000000000000.123 }'
    before = '{"a":[{"name":"é]"}], "traceEvents": ['
    text = f'{before}\n{kept},\n {EVENT},{EVENT},{kept}, {kept} ] ,"b":[{{"name":"y"}}]}}'
    source, target = file_of(tmp_path, text), tmp_path / f"out.json{ending}"

    edited(opened(source), target, edits(KEPT, MARKED, LEFT_OUT), [MARK, EVENT])

    copy = gzip.decompress(target.read_bytes()).decode() if ending else target.read_text()
    changed = EVENT.replace("}}", ',"index":1}}')
    mark = json.dumps(MARK, separators=(",", ":"))
    assert copy == f'{before}\n{kept},\n{changed},\n{kept}, {kept},\n{mark},\n{EVENT}] ,"b":[{{"name":"y"}}]}}'


@pytest.mark.parametrize("events", ["", EVENT])
def test_an_edited_copy_may_have_no_events_or_only_new_ones(tmp_path, events) -> None:
    """If no event is kept, the event list of the copy does not begin with a comma."""
    rank_trace = opened(file_of(tmp_path, f'{{"traceEvents":[{events}]}}'))
    for added in ([], [MARK]):
        edited(rank_trace, tmp_path / "out.json", edits(LEFT_OUT), added, overwrite=True)
        assert json.loads((tmp_path / "out.json").read_text()) == {"traceEvents": added}


@pytest.mark.parametrize("text", [f'[{EVENT},{{"name":"x"}}', f'[{EVENT},{{"name":"x"}},{EVENT[:50]}'])
def test_an_edited_copy_of_a_truncated_file_is_complete(tmp_path, text) -> None:
    """The copy of a truncated file contains the edited events and the added ones, and closes the list."""
    edited(opened(file_of(tmp_path, text)), tmp_path / "out.json", edits(LEFT_OUT, MARKED, KEPT, KEPT), [MARK])
    assert json.loads((tmp_path / "out.json").read_text()) == [{"name": "x", "args": {"index": 1}}, MARK]


@pytest.mark.parametrize(
    "text",
    [
        f'{{"traceEvents":[{EVENT}],{EVENT}]}}',
        f'{{"traceEvents":[{EVENT}],"a":1,"traceEvents":[{EVENT}]}}',
        f'{{"traceEvents":[{EVENT}]}}{{"traceEvents":[{EVENT}]}}',
        f'{{"traceEvents":[{EVENT}]}}garbage,{EVENT}]}}',
        f'{{"traceEvents":[null,{EVENT},{EVENT}]}}',
    ],
)
def test_a_damaged_file_whose_events_would_be_confused_is_not_copied(tmp_path, text) -> None:
    """A file is not copied if it has events outside its first event list, or if an entry of this list is not an event.

    The edits refer to events by position, so they would be applied to the wrong events.
    """
    rank_trace = opened(file_of(tmp_path, text))
    with pytest.raises(
        UnreadableTraceError, match=r"rank0\.json cannot be copied: the copy would contain only some of its events"
    ):
        edited(rank_trace, tmp_path / "out.json", edits(KEPT, LEFT_OUT), [MARK])
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("text", [f'{{"traceEvents":[{EVENT}],{EVENT}', f"[{EVENT}][{EVENT}]", f"[{EVENT}][{EVENT}"])
def test_events_are_not_added_to_several_lists(tmp_path, text) -> None:
    """A file with several event lists is refused, because new events could get a wrong position or clock."""
    rank_trace = opened(file_of(tmp_path, text))
    with pytest.raises(
        UnreadableTraceError, match=r"rank0\.json cannot be copied: .*; `holotrace check` lists the damage"
    ):
        with_events(rank_trace, tmp_path / "out.json", [MARK])
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("padding", [" " * len(EVENT) + " ", ",}" + " " * len(EVENT), "," + EVENT[:-1] + "]"])
def test_an_edited_copy_of_a_changed_file_is_an_error(tmp_path, padding) -> None:
    """A source that has changed since it was opened is refused, and nothing is written."""
    source = file_of(tmp_path, f'{{"traceEvents":[{EVENT},{EVENT}]}}')
    rank_trace = opened(source)
    assert rank_trace.health.event_count == 2
    file_of(tmp_path, f'{{"traceEvents":[{EVENT}{padding}]}}')

    with pytest.raises(UnreadableTraceError, match="has changed since"):
        edited(rank_trace, tmp_path / "out.json", edits(KEPT, KEPT))
    assert not (tmp_path / "out.json").exists()


def test_an_edited_copy_of_a_missing_file_is_an_error(tmp_path) -> None:
    """If the source was deleted after it was opened, the error is the usual `cannot be read`."""
    source = file_of(tmp_path, f"[{EVENT}]")
    rank_trace = opened(source)
    assert rank_trace.health.is_clean
    source.unlink()
    with pytest.raises(UnreadableTraceError, match="cannot be read"):
        edited(rank_trace, tmp_path / "out.json", edits(KEPT))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ('"args":{}', '"args":{"index":1}'),
        ('"args": { }', '"args": {"index":1}'),
        ('"args":{"a":{"args":{}} }', '"args":{"a":{"args":{}},"index":1}'),
        ('"args" : {"a":1}', '"args" : {"a":1,"index":1}'),
        ('"cat":"x" ', '"cat":"x","args":{"index":1}'),
        ('"args":null', '"args":{"index":1}'),
        (r'"a\"args":{"b":1}', r'"a\"args":{"b":1},"args":{"index":1}'),
        ('"b":[{"args":{"c":2}}],"args":{"a":1}', '"b":[{"args":{"c":2}}],"args":{"a":1,"index":1}'),
    ],
)
def test_args_are_added_in_every_layout(tmp_path, args, expected) -> None:
    """New keys go to the end of an event's args, where they override existing ones."""
    event = f'{{"ph":"X","name":"n","pid":0,"tid":0,"ts":1,"dur":2,{args}}}'
    rank_trace = opened(file_of(tmp_path, f'{{"traceEvents":[{event}]}}'))
    edited(rank_trace, tmp_path / "out.json", edits(MARKED))
    assert (tmp_path / "out.json").read_text() == f'{{"traceEvents":[\n{event.replace(args, expected)}]}}'


def test_numbers_replace_the_names_of_complete_events(tmp_path) -> None:
    """A number replaces the name of each complete event; an instant event is unchanged.

    The complete events also lose the contents of their args, and the spaces between their fields.
    """
    instant = EVENT.replace('"X"', '"i"')
    text = f'[{EVENT}, {{ "name": "a\\"b", "ph" : "X" , "ts": 1,"dur":2,"pid":0,"tid":[0, 1] }}, {instant}]'
    edited(opened(file_of(tmp_path, text)), tmp_path / "out.json", edits(*((NUMBERED, n) for n in (5, 6, 7))))
    first = EVENT.replace("gemm", "5").replace('{"stream":7}', "{}")
    second = '{"name":"6","ph":"X","ts":1,"dur":2,"pid":0,"tid":[0, 1],"args":{}}'
    assert (tmp_path / "out.json").read_text() == f"[\n{first},\n{second},\n{instant}]"


texts = st.text(st.sampled_from('a"\\{}[],:\n é'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
complete_events = st.builds(
    lambda more, name, args: {**more, "ph": "X", "name": name, "ts": 1, "dur": 2, "pid": 0, "tid": 0, "args": args},
    *(st.dictionaries(texts, values, max_size=3), texts, st.dictionaries(texts, values, max_size=2)),
)
any_edit = st.sampled_from([(KEPT, 0), (LEFT_OUT, 0), (MARKED, 0), (NUMBERED, 3)])


@given(
    st.lists(st.tuples(complete_events, any_edit), max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.sampled_from([",", " ,\n "]),
)
def test_edited_and_rewritten_copies_are_the_same(tmp_path_factory, rows, indent, is_ascii, separator) -> None:
    """`edited`, which parses no events, writes the same content as `rewritten`, which parses all of them."""
    folder = tmp_path_factory.mktemp("copies")
    listed = separator.join(json.dumps(event, indent=indent, ensure_ascii=is_ascii) for event, _ in rows)
    rank_trace = opened(file_of(folder, f'{{"traceEvents":[{listed}],"traceName":"]}}"}}'))
    changes = edits(*(edit for _, edit in rows))

    edited(rank_trace, folder / "edited.json", changes, [MARK])
    rewritten(rank_trace.source, folder / "rewritten.json", _in_order(changes), [MARK])

    copy, expected = (json.loads((folder / f"{name}.json").read_bytes()) for name in ("edited", "rewritten"))
    assert copy == expected
