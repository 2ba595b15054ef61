"""The navigation marks the current page and dims pages without data, at first and after a link is followed."""

from __future__ import annotations

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, go_to, serving, visit
from holotrace.web.pages import PAGES
from holotrace.web.session.selection import Selection
from jobs import gpu_job
from web_client import WebClient, page_links

MARKED = """() => [
  [...document.querySelectorAll('#nav a[aria-current]')].map(link => link.textContent),
  [...document.querySelectorAll('#nav a[title]')].filter(link => link.title).map(link => link.textContent),
]"""


def test_one_page_is_marked(tmp_path) -> None:
    """On each page, the navigation marks only the link to this page."""
    gpu_job().write(tmp_path)
    client = WebClient(tmp_path)
    for page in PAGES:
        shown = client.page(f"?view={page.name}&run={client.session.runs[0].id}")
        assert [link["title"] for link in page_links(shown) if link["isShown"]] == [page.title]


@pytest.mark.browser
@pytest.mark.timeout(300)
def test_marks_follow_the_visitor(tmp_path, browser) -> None:
    """After each click on a link, the navigation marks the new page, and pages without data stay dimmed."""
    gpu_job().write(tmp_path)
    with serving(tmp_path) as (session, url), visit(browser, url + Selection(run=session.runs[0].id).query()) as seen:
        frame = seen.page.main_frame
        for name, title in (("overview", "Overview"), ("idle_time", "Idle time"), ("health", "Health")):
            go_to(frame, name)
            seen.settle(frame, title)
            wanted = f"() => {{ const [pages, dimmed] = ({MARKED})(); return pages.join() === '{title}' && dimmed.includes('Memory'); }}"
            frame.wait_for_function(wanted, timeout=PATIENCE_MS // 6)
        assert not seen.troubles
