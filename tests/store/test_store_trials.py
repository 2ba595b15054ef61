"""With many writers, killed processes or failing disks, a result is either correct or a clear error.

`scripts/store_trials.py` runs more trials.
"""

from __future__ import annotations

import logging

import pytest
from scripts.store_trials import damage, failed, kills, race


@pytest.fixture(autouse=True)
def _quiet(caplog) -> None:
    """Silence the log, which would contain hundreds of warnings about rebuilt entries."""
    caplog.set_level(logging.ERROR, "holotrace")


@pytest.mark.parametrize(
    ("trials", "processes", "address"),
    [
        pytest.param(3, 4, "{folder}/job.store", marks=pytest.mark.slow),
        (2, 2, "local://{folder}/job.store"),
    ],
)
def test_processes_write_disjoint_ranks_at_once(trials, processes, address) -> None:
    """Processes that write different ranks at once store all of them completely, on disk and in object stores."""
    counts = race(trials, processes, address=address)
    assert (counts["written: True"], counts["store: whole"], failed(counts)) == (trials * processes, trials, False), (
        counts
    )


@pytest.mark.slow
def test_processes_write_the_same_ranks_at_once() -> None:
    """If two processes write the same ranks on disk, the last writer's files stay, and neither process fails."""
    counts = race(2, 2, same=True)
    assert (counts["written: True"], counts["store: whole"], failed(counts)) == (4, 2, False), counts


@pytest.mark.slow
def test_processes_upload_the_same_ranks_at_once() -> None:
    """If two processes upload the same ranks, one upload may be refused, but no rank has a mix of files from both processes."""
    counts = race(2, 2, same=True, address="local://{folder}/job.store")
    assert counts["written: True"] + counts["written: refused"] == 4, counts
    assert not failed(counts), counts


@pytest.mark.slow
def test_killed_processes_leave_no_wrong_data() -> None:
    """After SIGKILL at any time, the next process removes the leftovers and gets correct data."""
    counts = kills(2, events=300)
    assert (counts["opened: whole"], counts["store then: whole"], failed(counts)) == (1, 1, False), counts


@pytest.mark.slow
def test_changed_bytes_are_noticed() -> None:
    """Changed bytes make the cache rebuild an entry; in a store, they raise an error that names the file."""
    counts = damage(16)
    assert (counts["cache: whole"], failed(counts)) == (8, False), counts
    reported = counts["job.store: an error that names the file and the solution"]
    assert reported + counts["job.store: whole"] == 8, counts
