"""The progress text of pages."""

from __future__ import annotations

from holotrace.web.session.reading import Reading


def test_progress_is_a_percentage_of_the_file() -> None:
    """At most 100 %, and no text once the file is read; progress without a file is ignored."""
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
