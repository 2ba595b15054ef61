"""The answer to a query contains the rows as text, and links each row to its event or time on the timeline."""

from __future__ import annotations

import pytest

from holotrace.errors import InvalidOptionError
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.sql import answer as answers
from holotrace.web.timeline.sql.answer import checked, sql_answer, views_answer

pytest.importorskip("duckdb", reason="the extra `sql` is not installed")

BASE = 1_700_000_000_000_000_000


def job(ranks: int = 2) -> Trace:
    """Return ranks that each run one kernel, which starts after 10 µs and takes 5 µs."""
    builder = TraceBuilder(base_time_ns=BASE)
    for rank in range(ranks):
        builder.rank(rank).kernel("<b>gemm</b>\n", start_us=10, duration_us=5, launch_us=0)
    return builder.build()


def test_rows_are_texts_with_all_digits() -> None:
    """Times since 1970 keep all digits, names are unchanged, null stays null, and booleans become words."""
    answer = sql_answer(
        job(), "SELECT rank, start_ns, name, NULL AS nothing, true AS yes, 1.5 AS half FROM kernels WHERE rank = 1"
    )

    assert answer["columns"] == ["rank", "start_ns", "name", "nothing", "yes", "half"]
    assert answer["rows"][0][:2] == ["1", str(BASE + 10_000)]
    assert answer["rows"][0][2].startswith("<b>gemm</b>")
    assert answer["rows"][0][3:] == [None, "true", "1.5"]
    assert answer["count"] == 1


def test_a_row_is_an_event_or_a_time() -> None:
    """A row with a rank and `event_index` links to the event, and one with a rank and `start_ns` to the time.

    In a job of several ranks, a row has no link if its rank is missing or unknown.
    """
    event = sql_answer(job(), "SELECT rank, event_index, start_ns FROM kernels WHERE rank = 1")
    time = sql_answer(job(), "SELECT rank, start_ns, duration_ns FROM kernels ORDER BY rank")
    start = sql_answer(job(), "SELECT rank, start_ns FROM kernels WHERE rank = 0")

    assert event["places"] == [[1, int(event["rows"][0][1])]]
    assert time["places"] == [[rank, str(BASE + 10_000), str(BASE + 15_000)] for rank in (0, 1)]
    assert start["places"] == [[0, str(BASE + 10_000), str(BASE + 10_000)]]
    assert sql_answer(job(), "SELECT count(*) AS n FROM kernels")["places"] == [None]
    assert sql_answer(job(), "SELECT 7 AS rank, 1 AS start_ns")["places"] == [None]
    assert sql_answer(job(), "SELECT start_ns FROM kernels LIMIT 1")["places"] == [None]


def test_the_only_rank_needs_no_column() -> None:
    """In a trace of one rank, rows link to the timeline even if the query selects no `rank` column."""
    assert sql_answer(job(1), "SELECT start_ns, end_ns FROM kernels")["places"] == [
        [0, str(BASE + 10_000), str(BASE + 15_000)]
    ]


def test_rows_beyond_the_limit_are_counted() -> None:
    """Of 1,500 rows, the answer has the first 1,000 and the total number of rows."""
    answer = sql_answer(job(), "SELECT range AS n FROM range(1500)")

    assert (len(answer["rows"]), len(answer["places"]), answer["count"]) == (1_000, 1_000, 1_500)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT nothing FROM kernels", 'Referenced column "nothing" not found'),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("DROP TABLE kernels", "one SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Permission"),
    ],
)
def test_an_error_says_what_is_wrong(query: str, reason: str) -> None:
    """If DuckDB refuses a query, the answer has the reason and no rows."""
    answer = sql_answer(job(), query)

    assert list(answer) == ["error"]
    assert reason in answer["error"]


def test_a_limit_names_the_command_that_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that exceeds the page's time limit stops; the message names no option of `holotrace sql`."""
    monkeypatch.setattr(answers, "TIMEOUT_S", 0.2)
    answer = sql_answer(job(), "SELECT count(*) FROM range(10000000) a, range(10000000) b")

    assert answer["error"].startswith(
        "the query took longer than 0.2 s and was stopped; query less data. On this page, a query can use"
    )
    assert "--timeout" not in answer["error"]


def test_the_views_are_listed() -> None:
    """Every view is listed with its columns, the first of which is `rank`."""
    views = {view["name"]: view["columns"] for view in views_answer()}

    assert views["kernels"][:4] == ["rank", "event_index", "start_ns", "end_ns"]
    assert "collectives" in views


@pytest.mark.parametrize(
    ("query", "reason"), [(None, "empty"), ("  ", "empty"), ("x" * 10_001, "10,001"), ([], "empty")]
)
def test_a_query_is_a_text(query: object, reason: str) -> None:
    """A query that is empty, not text, or longer than 10,000 characters is refused."""
    with pytest.raises(InvalidOptionError, match=reason):
        checked(query)
