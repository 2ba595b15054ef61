"""From the list of runs, one or two clicks lead to the answer to a common question."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, Visit, serving, visit
from holotrace.testing.builder import TraceBuilder
from reference_data import IN_THE_REPOSITORY

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.slow]

TRACES = IN_THE_REPOSITORY / "traces"
EXAMPLES = IN_THE_REPOSITORY.parents[1] / "examples" / "gpu" / "traces"
RECORDINGS = {
    "waiting": TRACES / "ddp_gloo_4rank",
    "generating": EXAMPLES / "generation",
    "remembering": EXAMPLES / "training-memory",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """Serve three recordings, and two runs of one step each whose kernels differ in length."""
    folder = tmp_path_factory.mktemp("clicks")
    for name, path in RECORDINGS.items():
        shutil.copytree(path, folder / name)
    for name, length_us in (("before", 100), ("after", 200)):
        builder = TraceBuilder().step(1, 0, length_us).operator("aten::mm", start_us=1, duration_us=20)
        builder.kernel("gemm", start_us=40, duration_us=length_us - 40, launch_us=10).write(folder / name)
    with serving(folder) as (_, address):
        yield address


@dataclass
class User:
    """A user whose clicks are counted."""

    seen: Visit
    clicks: int = 0

    def click(self, role: str, name: str) -> None:
        """Click the element with this role and exact name."""
        self.seen.page.get_by_role(role, name=name, exact=True).click()
        self.clicks += 1

    def click_row(self, run: str, role: str) -> None:
        """Click the element with this role in the row of a run."""
        row = self.seen.page.locator(".holotrace-run", has=self.seen.page.get_by_role("link", name=run, exact=True))
        row.get_by_role(role, name="compare").click()
        self.clicks += 1

    def reads(self, *texts: str) -> None:
        """Wait until the page shows all of these texts."""
        for text in texts:
            self.seen.page.locator("#page").get_by_text(text).first.wait_for(timeout=PATIENCE_MS)


@pytest.fixture
def user(url, browser):
    """Open the list of runs."""
    with visit(browser, url) as seen:
        seen.settle(seen.page.main_frame, "Runs")
        yield User(seen)
        assert not seen.troubles


@pytest.mark.parametrize(
    ("run", "texts"),
    [
        (
            "waiting",
            [
                "rank 3 is late and causes 91.5 % of all waiting between ranks",
                "mostly because of Python's <built-in function sleep> in ddp.py(35): main",
            ],
        ),
        ("generating", ["of the devices' idle time", "models.py(33): forward runs"]),
        ("generating", ["; models.py(33): forward launches it"]),
        ("remembering", ["Memory peaks at 1.56 GiB on rank 0 (cuda)"]),
        ("waiting", ["all_reduce reaches a bus bandwidth of 51.2 MB/s"]),
    ],
    ids=["late rank", "idle cause on the host", "line of the costliest kernel", "memory peak", "bus bandwidth"],
)
def test_one_click_answers(user, run: str, texts: list[str]) -> None:
    """One click on a run shows the answer to the question."""
    user.click("link", run)
    user.reads(*texts)
    assert user.clicks == 1


def test_two_clicks_compare_two_runs(user) -> None:
    """Ticking one run and then clicking another run's link compares the two.

    The newer run is always the test run, and the older run the control run.
    """
    user.click_row("before", "checkbox")
    user.click_row("after", "link")
    user.reads("A step takes 200 µs instead of 100 µs (+100 %)")
    assert user.clicks == 2
