"""`write_job` writes traces of a simulated job, and the analyses of these traces find what was simulated."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter

import pytest

import holotrace
from holotrace.enrich.device.launches import launches
from holotrace.enrich.steps.steps import steps
from holotrace.errors import InvalidOptionError
from holotrace.testing import write_job
from holotrace.testing.job_plan import BEGIN_NS, STREAM_GAP_NS
from holotrace.testing.synthetic import TRUTH_FILE, main

SMALL = {"ranks": 4, "steps": 2, "layers": 2, "ranks_per_host": 2, "seed": 7}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create the folder of the job."""
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def truth(folder):
    """Write a small job on two hosts; return its truth."""
    return write_job(folder, **SMALL)


@pytest.fixture(scope="module")
def trace(folder, truth):  # noqa: ARG001 -- the fixture `truth` writes the files
    """Open the job."""
    return holotrace.open_trace(folder, cache=False)


def contents(folder):
    """Return the bytes of every file."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def parsed(folder, rank_truth):
    """Return the parsed file of a rank."""
    return json.loads(gzip.decompress((folder / rank_truth.file).read_bytes()))


def test_files_are_named_as_torch_names_them(folder, truth):
    """As in PyTorch, file names contain host, process and time; the folder has a file per rank and the truth file."""
    names = [rank.file for rank in truth.ranks]

    assert all(re.fullmatch(r"node-\d\d_\d+\.\d{19}\.pt\.trace\.json\.gz", name) for name in names)
    assert {path.name for path in folder.iterdir()} == {*names, TRUTH_FILE}


def test_every_file_is_valid_json_with_a_complete_header(folder, truth):
    """Each header contains the rank, groups, devices and options, under the keys that the profiler uses."""
    for rank in truth.ranks:
        keys = parsed(folder, rank)
        info = keys["distributedInfo"]
        assert (info["rank"], info["world_size"], info["backend"]) == (rank.rank, 4, "nccl")
        assert [group["ranks"] for group in info["pg_config"]] == [
            [0, 1, 2, 3],
            [0, 1] if rank.rank < 2 else [2, 3],
        ]
        assert [device["name"] for device in keys["deviceProperties"]] == ["NVIDIA H100 80GB HBM3"] * 2
        assert (keys["record_shapes"], keys["host_name"]) == (1, rank.host)


def test_times_are_written_with_three_decimals(folder, truth):
    """Every `ts` and `dur` in a file has exactly three decimals."""
    text = gzip.decompress((folder / truth.ranks[0].file).read_bytes()).decode()
    times = re.findall(r'"(?:ts|dur)": (\S+?),?\n', text)

    assert len(times) > 500
    assert all(re.fullmatch(r"\d+\.\d{3}", written) for written in times)


def test_the_same_options_give_the_same_bytes(tmp_path):
    """With the same options, all files are equal; with another seed, they differ."""
    write_job(tmp_path / "a", **SMALL)
    write_job(tmp_path / "b", **SMALL)
    write_job(tmp_path / "c", **{**SMALL, "seed": 8})

    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a") != contents(tmp_path / "c")


def test_the_truth_file_equals_the_result(folder, truth):
    """The truth file contains the returned truth and the name of the format."""
    saved = json.loads((folder / TRUTH_FILE).read_text())

    assert saved == json.loads(json.dumps(truth.to_dict()))
    assert saved["schema"] == "holotrace.testing.job_truth/1"


def test_the_reader_finds_all_ranks_and_skips_the_truth(trace):
    """The reader opens the files of all four ranks, finds no problem in them, and skips the truth file."""
    assert list(trace.ranks) == [0, 1, 2, 3]
    assert [path.rpartition("/")[2] for path in (skipped.path for skipped in trace.skipped)] == [TRUTH_FILE]
    assert [rank_trace.health.findings for rank_trace in trace.ranks.values()] == [()] * 4


def test_temporal_breakdown_equals_the_truth(trace, truth):
    """`temporal_breakdown` returns the true window, computation and idle time of each rank, to the nanosecond."""
    per_device = holotrace.temporal_breakdown(trace).per_device

    columns = ["rank", "device", "start_ns", "window_ns", "computation_ns", "idle_ns", "non_computation_ns"]
    assert per_device.select(columns).rows() == [
        (
            rank.rank,
            rank.device,
            rank.start_ns,
            rank.window_ns,
            rank.computation_ns,
            rank.idle_ns,
            rank.busy_ns - rank.computation_ns,
        )
        for rank in truth.ranks
    ]


def test_kernel_breakdown_equals_the_truth(trace, truth):
    """`kernel_breakdown` returns the true time of each combination of kinds, and the true kernel counts."""
    breakdown = holotrace.kernel_breakdown(trace)

    for rank in truth.ranks:
        states = breakdown.per_state.filter(rank=rank.rank)
        assert dict(states.select("state", "total_ns").rows()) == rank.states_ns
        counts = Counter()
        for kind, count in breakdown.per_kernel.filter(rank=rank.rank).select("kernel_kind", "call_count").rows():
            counts[kind] += count
        assert counts == rank.kernel_counts


def test_communication_overlap_equals_the_truth(trace, truth):
    """`communication_overlap` returns the true communication and overlap of each rank, to the nanosecond."""
    per_rank = holotrace.communication_overlap(trace).per_rank

    assert per_rank.select("rank", "communication_ns", "overlap_ns").rows() == [
        (rank.rank, rank.communication_ns, rank.overlap_ns) for rank in truth.ranks
    ]
    assert all(0 < rank.overlap_ns < rank.communication_ns for rank in truth.ranks)


def test_idle_time_equals_the_truth(trace, truth):
    """`idle_time` returns the true idle time of each stream and device by cause, to the nanosecond."""
    idle = holotrace.idle_time(trace)

    for rank in truth.ranks:
        of_device = idle.per_device.filter(rank=rank.rank).select("category", "idle_ns")
        assert dict(of_device.rows()) == rank.idle_of_device_ns
        of_streams = {}
        for stream, category, idle_ns in (
            idle.per_stream.filter(rank=rank.rank).select("stream", "category", "idle_ns").rows()
        ):
            of_streams.setdefault(str(stream), {})[category] = idle_ns
        assert of_streams == rank.idle_by_stream_ns


def test_all_three_reasons_to_wait_occur(truth):
    """On every rank, stream 7 waits for the host, for kernels to start, and for communication."""
    assert all(min(rank.idle_by_stream_ns["7"].values()) > 0 for rank in truth.ranks)


def test_steps_equal_the_truth(trace, truth):
    """Steps have their true numbers, starts and ends, on the host's clock."""
    for rank in truth.ranks:
        recorded = steps(trace.ranks[rank.rank]).select("step", "start_ns", "end_ns")
        assert recorded.rows() == [(step.step, step.start_ns, step.end_ns) for step in rank.steps]


def test_every_piece_of_device_work_has_its_launch(trace, truth):
    """All kernels, copies and memsets have a launch."""
    for rank in truth.ranks:
        launched = launches(trace.ranks[rank.rank])
        assert launched.height == sum(rank.kernel_counts.values())
        assert launched["launch_index"].null_count() == 0


def test_collectives_end_at_the_same_true_time(folder, truth):
    """With clock offset and drift corrected, each collective ends on all its members within one microsecond."""
    ends = {}
    for rank in truth.ranks:
        for event in parsed(folder, rank)["traceEvents"]:
            if event.get("cat") == "kernel" and "Seq" in event["args"]:
                args = event["args"]
                shown_ns = round(1_000 * event["ts"]) + round(1_000 * event["dur"]) + 1_790_857_026_000_000_000
                since_begin_ns = shown_ns - rank.clock_offset_ns - BEGIN_NS
                true_ns = BEGIN_NS + since_begin_ns - since_begin_ns * rank.clock_drift_ppb // 1_000_000_000
                host = 0 if args["Process Group Name"] == "0" else rank.rank // 2
                ends.setdefault((args["Process Group Name"], host, args["Seq"]), []).append(true_ns)

    by_sequence = {(op.group, op.first_member // 2, op.sequence): op.end_true_ns for op in truth.collectives}
    assert ends.keys() == by_sequence.keys()
    for key, true_ends in ends.items():
        assert len(true_ends) == (4 if key[0] == "0" else 2)
        assert all(abs(true_ns - by_sequence[key]) <= 1_000 for true_ns in true_ends)


def test_others_wait_for_the_straggler(truth):
    """Rank 3, the straggler, arrives last at every all-reduce and waits the least."""
    assert truth.straggler_rank == 3
    assert {op.last_to_arrive for op in truth.collectives if op.collective == "allreduce"} == {3}
    waits = [rank.collective_wait_ns for rank in truth.ranks]
    assert waits[3] < STREAM_GAP_NS * 100 < min(waits[:3])


def test_a_job_may_have_no_straggler(tmp_path):
    """With `straggler_rank=None`, no rank is delayed."""
    truth = write_job(tmp_path, **{**SMALL, "straggler_rank": None})

    assert (truth.straggler_rank, truth.straggler_delay_ns) == (None, 0)


def test_a_single_rank_is_a_job(tmp_path):
    """In a job with one rank, collectives contain no waiting, and the measured communication time is correct."""
    truth = write_job(tmp_path, ranks=1, steps=1, layers=1)

    assert [rank.collective_wait_ns for rank in truth.ranks] == [0]
    assert holotrace.communication_overlap(holotrace.open_trace(tmp_path, cache=False)).per_rank[
        "communication_ns"
    ].to_list() == [truth.ranks[0].communication_ns]


@pytest.mark.slow
def test_five_hundred_ranks_are_simulated(tmp_path):
    """512 ranks have 512 files that open as ranks 0 to 511."""
    truth = write_job(tmp_path, ranks=512, steps=1, layers=1)

    assert len({rank.file for rank in truth.ranks}) == 512
    assert list(holotrace.open_trace(tmp_path, cache=False).ranks) == list(range(512))


def test_an_impossible_job_is_rejected(tmp_path):
    """Requesting straggler rank 9 in a job of two ranks raises an error that names the option."""
    with pytest.raises(InvalidOptionError, match="straggler_rank=9"):
        write_job(tmp_path, ranks=2, straggler_rank=9)


def test_the_command_prints_what_it_wrote(tmp_path, capsys):
    """The command prints the ranks, the steps, the straggler, and the path of the truth file."""
    assert main([str(tmp_path), "--ranks", "2", "--steps", "1", "--layers", "1"]) == 0

    said = capsys.readouterr().out
    assert f"{tmp_path}: 2 ranks, 1 step" in said
    assert "Rank 1 computes 1.5 ms longer in every step." in said
    assert str(tmp_path / TRUTH_FILE) in said


def test_the_command_rejects_invalid_options(tmp_path, capsys):
    """For `--ranks 0`, the command prints the reason without a traceback."""
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--ranks", "0"])

    assert "ranks=0: must be at least 1" in capsys.readouterr().err


def test_the_module_runs_as_a_program(tmp_path):
    """`python -m holotrace.testing.synthetic` works without warnings."""
    command = [
        sys.executable,
        "-m",
        "holotrace.testing.synthetic",
        str(tmp_path),
        "--ranks=1",
        "--steps=1",
        "--layers=1",
    ]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 -- own code

    assert finished.stderr == ""
    assert "1 rank, 1 step," in finished.stdout


def test_recorded_traces_stay(tmp_path):
    """`write_job` replaces an older simulated job, but refuses a folder with other traces."""
    (tmp_path / "rank0.pt.trace.json").write_text("mine")
    with pytest.raises(InvalidOptionError, match="may be recorded traces"):
        write_job(tmp_path, **SMALL)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    write_job(tmp_path / "own", **SMALL)
    write_job(tmp_path / "own", **SMALL)
