"""Golden tables are results in CSV files, so every changed number is visible in a review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from polars.testing import assert_frame_equal

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class GoldenTables:
    """Golden tables in a folder; if `rewrite` is true, `check` writes the new results there before it compares them."""

    folder: Path
    rewrite: bool

    def check(self, table: pl.DataFrame, name: str) -> None:
        """Compare `table` with `<folder>/<name>.csv`, which `make golden` writes."""
        path = self.folder / f"{name}.csv"
        if self.rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            table.write_csv(path)
        assert path.is_file(), f"{path} is missing; `make golden` writes it"
        assert_frame_equal(table, pl.read_csv(path, schema=table.schema), rel_tol=1e-12)
