"""Merge the causes of all ranks of a job into one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.job_graph.causes.cause_names import CAUSE_COLUMNS, Cause
from holotrace.enrich.job_graph.causes.histories import Histories
from holotrace.enrich.job_graph.causes.lines import LAUNCH_DELAY, SYNCHRONISATION, UNKNOWN

_Rows = npt.NDArray[np.int64]

BEFORE_RECORDING = "before the recording"
CLOCKS = "smaller than the error of the clocks"
UNMATCHED = "communication without its counterpart"
NOT_RECORDED = "work or launches that were not recorded"

_NAMELESS = {LAUNCH_DELAY: "launch_delay", SYNCHRONISATION: "synchronisation", UNKNOWN: "unknown"}


class JobCauses(NamedTuple):
    """The distinct causes of all ranks.

    table     the causes, with the columns `CAUSE_COLUMNS`
    of_rank   {rank: row numbers in `table`}: first, for each row of `Histories.causes`, the number of its cause; then
              the numbers of `UNKNOWN`, `SYNCHRONISATION` and `LAUNCH_DELAY`. These three constants are negative: they index the rows from the
              end.
    """

    table: pl.DataFrame
    of_rank: Mapping[int, _Rows]

    def row_of_unknown(self) -> dict[str | None, int]:
        """Map each reason why a cause may be unknown to the row of the unknown cause that has this reason."""
        return self._rows_of("unknown")

    def row_of_transfer(self) -> dict[str | None, int]:
        """Map each kind of collective to the row of the cause that represents its transfer."""
        return self._rows_of("communication")

    def _rows_of(self, kind: str) -> dict[str | None, int]:
        rows = self.table.with_row_index("row").filter(pl.col("cause") == kind)
        return dict(rows.select("name", "row").iter_rows())


def job_causes(histories: Mapping[int, Histories], collectives: pl.Series) -> JobCauses:
    """Return the causes in all histories, and the causes that every job can have.

    Every job can have these causes: the transfer of each kind of collective, launch delay, synchronisation, and the unknown
    causes.
    """
    families = collectives.unique().sort()
    common = pl.DataFrame(
        {
            "cause": ["communication"] * len(families) + [*_NAMELESS.values(), *["unknown"] * 3],
            "name": [*families, None, None, NOT_RECORDED, BEFORE_RECORDING, CLOCKS, UNMATCHED],
        },
        {"cause": Cause, "name": pl.String},
    )
    tables = [common, *(history.causes for history in histories.values())]
    every = pl.concat(tables, how="diagonal").select(pl.col(name).cast(kind) for name, kind in CAUSE_COLUMNS.items())
    distinct = every.unique(maintain_order=True)
    numbered = every.join(
        distinct.with_row_index("row"), on=list(CAUSE_COLUMNS), how="left", nulls_equal=True, maintain_order="left"
    )
    row = numbered["row"].to_numpy().astype(np.int64)
    nameless = dict(zip(_NAMELESS, row[len(families) :].tolist(), strict=False))
    from_end = [nameless[code] for code in sorted(nameless)]
    parts = np.split(row[len(common) :], np.cumsum([len(history.causes) for history in histories.values()]))
    return JobCauses(distinct, {rank: np.append(own, from_end) for rank, own in zip(histories, parts, strict=False)})
