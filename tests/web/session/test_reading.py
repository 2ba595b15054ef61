"""While files are read, pages show a progress text."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from holotrace.web.session.reading import CountingCalls, CountingRanks, Reading


def test_progress_is_a_percentage_of_the_file() -> None:
    """The progress text never exceeds 100 %, and it is empty before and after a file is read."""
    reading = Reading()
    reading.advance(5)
    assert reading.text() == ""
    reading.start(200, "rank0.json.gz")
    reading.advance(90)
    assert reading.text() == "reading rank0.json.gz: 45 %"
    reading.advance(500)
    assert reading.text() == "reading rank0.json.gz: 100 %"
    reading.finish()
    assert reading.text() == ""


def test_ranks_are_counted_until_all_are_done() -> None:
    """The text says how many ranks are done, including failed ones; it is empty after the last rank."""
    reading = Reading()
    executor = CountingRanks(reading, 3)
    assert [executor.submit(reading.text).result() for _ in range(2)] == ["0 of 3 ranks done", "1 of 3 ranks done"]
    assert reading.text() == "2 of 3 ranks done"
    assert isinstance(executor.submit(int, "x").exception(), ValueError)
    assert reading.text() == ""


def test_calls_of_another_executor_are_counted_when_they_finish() -> None:
    """The count starts again for a second pass over three ranks; after each pass, the text is empty."""
    reading = Reading()
    with ThreadPoolExecutor(1) as pool:
        executor = CountingCalls(pool, reading, 3)
        seen = [executor.submit_near(rank, reading.text) for rank in (0, 1, 2, 0, 1, 2)]
    one, two = "1 of 3 ranks done", "2 of 3 ranks done"
    assert [future.result() for future in seen] == ["", one, two, "", one, two]
    assert reading.text() == ""
