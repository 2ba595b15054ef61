"""Pages show a progress text while files are read."""

from __future__ import annotations

from holotrace.web.session.reading import Reading


def test_progress_is_a_percentage_of_the_file() -> None:
    """The progress text says at most 100 %, and is empty before a file starts and after it is read."""
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
