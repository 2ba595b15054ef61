"""`rank_in_name` finds the rank in a file name."""

from __future__ import annotations

import pytest

from holotrace.ingest.rank_names import rank_in_name


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-3.json", 3),
        ("rank3.json.gz", 3),
        ("rank_3.json", 3),
        ("Rank=3.json", 3),
        ("rank0.1795209476340443738.pt.trace.json.gz", 0),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("trace_rank_0.json", 0),
        ("sampled_rank-1.json.gz", 1),
        ("job.rank.12.json", 12),
        ("mtia_inference_rank_0.json.gz", 0),
        ("worker2_step_12.1694128201554.pt.trace.json.gz", 2),
        ("worker0.1623212756351.pt.trace.json.gz", 0),
        ("dp0_pp0_tp1_ep0_rank5.1763000000000.pt.trace.json.gz", 5),
        ("node1_local_rank2_rank10.json", 10),
        ("worker7_rank_3.json", 3),
        ("local_rank2.json", None),
        ("tp_rank1.json", None),
        ("frank3.json", None),
        ("rank.json", None),
        ("homeworker3.json", None),
        ("rank_1795209476340443738.json", None),
        ("host_1234.1694128201554.pt.trace.json", None),
        ("trace.json", None),
    ],
)
def test_a_name_may_contain_a_rank(name: str, rank: int | None) -> None:
    """`rank_3` has priority over `worker7`; the numbers in `tp_rank1`, in `frank3` and in times are not ranks."""
    assert rank_in_name(f"runs/rank9/{name}") == rank
