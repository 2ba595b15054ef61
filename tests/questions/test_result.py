"""Every result has an answer in one sentence, a figure, plain Python values and a notebook view."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

import holotrace
import holotrace.figures
from holotrace.catalogue import ANALYSES
from holotrace.errors import MissingDataError
from holotrace.questions.question import Analysis
from holotrace.questions.result import Result
from holotrace.store.trace import Trace
from holotrace.testing import TraceBuilder, small_job
from jobs import HOSTILE, built_hostile_job
from matrices import slow_except
from recordings import opened
from reference_data import IN_THE_REPOSITORY

REAL = [IN_THE_REPOSITORY / "traces" / name for name in ("two_rank_128", "ddp_gloo_4rank", "cupti")]

ANSWERS = {
    "temporal_breakdown": "The devices compute 50.8 % of the time, do only other work for 28.2 %, and idle for 20.9 %.",
    "kernel_breakdown": "64.3 % of the kernel time is computation; the longest kernel is gemm (57.1 %).",
    "communication_overlap": "0.0 % of the communication is hidden behind computation; rank 0 exposes the most, 600 µs.",
    "idle_time": "The devices are idle for 740 µs between kernels and copies, 71.6 % of it waiting for the host.",
    "critical_path": "55.0 % of the critical path of ProfilerStep#1 on rank 1 (1 ms) is computation.",
    "step_time": "A step takes 1 ms on average; its largest part is kernels (45.0 %).",
    "gpu_summary": "The devices are busy 65.0 % of the time on average; the least busy device, on rank 0, is busy 65.0 %.",
    "kernels": "61.5 % of the kernel time (1.6 ms) goes into gemm, more than into any other kernel.",
    "launch_statistics": "8 of 16 kernels start late; rank 1 has the longest median launch delay, 262 µs.",
    "queue_length": "The longest queue (rank 1, stream 20) has 0.7 launches on average and 1 at most.",
    "memory_bandwidth": "Memcpy HtoD moves 3.81 MiB, more than any other kind of copy, at 20 GB/s on average.",
    "operators": "61.5 % of the device self time (1.6 ms) goes into aten::mm, more than into any other operator.",
    "modules": "ranks 0-1: no module calls were recorded; record with with_stack=True",
    "source_lines": (
        "ranks 0-1: no Python functions were recorded; record with with_stack=True to see which lines take the time"
    ),
    "operator_kernels": "61.5 % of the kernel time (1.6 ms) is in kernels that aten::mm launches, more than for any other operator.",
    "kernel_sequences": "The trace has no data for this question.",
    "user_annotations": "1 ms of host time on rank 0 goes into ProfilerStep#1, the costliest annotation, in 1 call.",
    "stragglers": "The other ranks wait 400 µs for rank 1, which is late.",
    "distributed": "50.0 % of the time in collectives (800 µs over all ranks) is waiting for other ranks.",
}


NUMBER_FIRST = re.compile(r"No |None of |[^;:]*?\d (?:%|[nµm]?s|[KMGT]?i?B|[A-Za-z]{2,})(?!\w)")
"""The beginning of an answer: a clause with a number and its unit, or a clause that begins with `No` or `None of`."""


@pytest.fixture(scope="module")
def small() -> Trace:
    """Return the small job; it is built once, so tests share its derived results."""
    return small_job()


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_of_a_small_job(name: str, small: Trace) -> None:
    """`answer` is one sentence with the numbers of `small_job`."""
    assert getattr(holotrace, name)(small).answer == ANSWERS[name]


def test_the_answer_of_a_comparison() -> None:
    """In each of two steps, rank 1's gemm takes 200 µs longer than rank 0's, so the ranks differ by 400 µs."""
    job = small_job()
    control, test = job.select([0]), job.select([1])

    assert (
        holotrace.compare_traces(control, test).answer
        == "From control to test, the time of gemm changed most: +400 µs."
    )
    assert holotrace.compare_operators(control, test).answer.startswith(
        "From control to test, the time of aten::mm changed most: +200 µs"
    )


@pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("folder", slow_except(REAL, REAL[1:]), ids=lambda path: path.name)
def test_every_result_of_a_real_recording_shows_itself(entry: Analysis, folder: Path) -> None:
    """Every result of a real recording has a one-line answer, JSON with all fields, and HTML."""
    try:
        result = entry.compute(opened(folder))
    except MissingDataError:
        return
    content = json.dumps(result.to_dict(), default=str)

    assert isinstance(result, Result)
    assert result.answer
    assert "\n" not in result.answer
    assert result._main_table().is_empty() or NUMBER_FIRST.match(result.answer), result.answer
    assert all(f'"{field}"' in content for field in vars(result))
    assert result._repr_html_().startswith("<p><b>")


def test_a_prompt_shows_the_answer_and_the_size_of_each_table(small: Trace) -> None:
    """`repr` prints no table, because tables may have hundreds of rows; the `repr` of a summary lists its results."""
    assert repr(holotrace.communication_overlap(small)) == (
        f"CommunicationOverlap: {ANSWERS['communication_overlap']}\n  per_rank: 2 rows"
    )
    assert repr(holotrace.modules(small)).endswith(
        "\n  finding: ranks 0-1: no module calls were recorded; record with with_stack=True"
    )
    whole = holotrace.summary(small)
    assert repr(whole).startswith(f"Summary: {whole.verdict}\n  results: diagnosis, temporal_breakdown, ")
    assert repr(holotrace.check(small)) == "Check: 2 files: 2 clean."


@pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)
def test_names_from_a_trace_are_text_in_a_notebook(entry: Analysis) -> None:
    """`<img` and `<script` in names are escaped in HTML, and control characters in `repr`."""
    result = entry.compute(built_hostile_job())
    html = result._repr_html_()

    assert "<img" not in html
    assert "<script" not in html
    assert repr(result).replace("\n", "").isprintable()


def test_hostile_names_appear_in_some_result() -> None:
    """In the HTML of a `kernels` result, a hostile name appears in escaped form."""
    assert HOSTILE.split()[0].replace("<", "&lt;") in holotrace.kernels(built_hostile_job())._repr_html_()


@pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)
def test_every_result_draws_itself(entry: Analysis, small: Trace) -> None:
    """`result.plot()` draws the figure of `holotrace.figures.plot_<name>` and accepts a theme."""
    result = entry.compute(small if entry.name != "cupti_counters" else built_hostile_job())
    draw = getattr(holotrace.figures, f"plot_{entry.name}")

    light = result.plot().to_json()
    assert light == draw(result).to_json()
    assert "theme" in inspect.signature(draw).parameters
    assert light != result.plot(theme="dark").to_json()


def test_many_rows_and_caveats_are_cut_in_a_notebook() -> None:
    """A notebook says that 2 of 12 rows are hidden, and how many findings are not shown."""
    builder = TraceBuilder()
    for rank in range(12):
        for number in range(rank + 1):
            builder.rank(rank).kernel(f"gemm_{rank}", start_us=10 * number, duration_us=1)
    result = holotrace.kernels(builder.build())
    html = result._repr_html_()

    assert "2 rows are not shown" in html
    assert f"… and {len(result.findings) - 5} more" in html


@pytest.mark.slow
def test_a_summary_shows_itself_in_a_notebook() -> None:
    """A notebook shows the verdict and the findings of a summary; names from the trace are escaped."""
    whole = holotrace.summary(small_job())

    assert whole._repr_html_().startswith("<p><b>A step takes 1 ms, and the GPUs are busy 70.0 % of it; ")
    assert whole._repr_html_().count("<tr>") == 1 + whole.diagnosis.per_finding["part_of"].null_count()
    assert HOSTILE not in holotrace.summary(built_hostile_job())._repr_html_()


def test_a_summary_becomes_plain_python() -> None:
    """`to_dict` returns what `--json` prints."""
    whole = holotrace.summary(small_job())

    content = json.loads(json.dumps(whole.to_dict()))
    assert list(content["analyses"]) == list(whole.results)
    assert (content["ranks"], content["verdict"]) == ([0, 1], whole.verdict)
