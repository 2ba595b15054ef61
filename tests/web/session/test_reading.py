"""What a page says while files are read."""

from __future__ import annotations

from holotrace.web.session.reading import Reading


def test_it_says_how_far_the_reading_of_a_file_is() -> None:
    """Never more than all of it, and nothing once it is read; an advance of no file is nothing."""
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
