"""What scripts read from `TraceAnalysis.t`."""

from __future__ import annotations

import gzip
import json
from functools import cached_property
from typing import Any

import pandas as pd

from hta.configs.parser_config import ParserConfig
from hta.enrich.job_time import origin_ns
from hta.enrich.steps import steps
from hta.errors import InvalidOptionError
from hta.export.event_json import event_text
from hta.export.new_file import new_file
from hta.facade.arg_columns import configured
from hta.facade.device_type import device_type
from hta.facade.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta.facade.trace_frame import symbol_table, trace_frame
from hta.locations import located
from hta.store.trace import RankTrace, Trace

_GZIP_MAGIC = b"\x1f\x8b"


class TraceView:
    """The trace behind `TraceAnalysis`, with the attributes and methods of HTA's `Trace`.

    trace          what `hta.open_trace` returned, less the last step where that is left out
    trace_path     the folder, as given
    trace_files    {rank: file}
    meta_data      {rank: top-level keys of the file except traceEvents}
    parser_config  which args are columns of the frames
    is_parsed      True
    """

    is_parsed = True

    def __init__(self, trace: Trace, trace_path: str, parser_config: ParserConfig | None = None) -> None:
        self.trace_path = trace_path
        self.parser_config = ParserConfig.get_default_cfg() if parser_config is None else parser_config
        self._show(trace)

    @property
    def meta_data(self) -> dict[int, dict[str, Any]]:
        """The top-level keys of each rank's file."""
        return {rank: each.header.raw for rank, each in self.trace.ranks.items()}

    @cached_property
    def symbol_table(self) -> TraceSymbolTable:
        """The texts of the numbers in the columns `cat` and `name` of all ranks."""
        return symbol_table(self.trace)

    @property
    def min_ts(self) -> float:
        """When the first event of any rank begins, in microseconds since 1970; `ts` counts from there."""
        return self._origin_ns / 1_000

    @property
    def traces(self) -> dict[int, pd.DataFrame]:
        """The frame of every rank."""
        return self.get_all_traces()

    def get_ranks(self) -> list[int]:
        """Return the ranks in rising order."""
        return list(self.trace.ranks)

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """Return the numbers of a rank's steps in rising order; by default of the first rank.

        Raises:
            UnknownRankError: there is no such rank.
        """
        return sorted(set(self._rank(rank).derive(steps)["step"].to_list()))

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return the events of a rank, as `hta.facade.trace_frame` describes them.

        The frame is made at the first call, and the same one is returned afterwards: what a script adds to it stays,
        and no analysis of this package looks at it.

        Raises:
            UnknownRankError: there is no such rank.
        """
        rank_trace = self._rank(rank)
        if rank not in self._frames:
            frame = trace_frame(rank_trace, self.symbol_table, self._origin_ns)
            self._frames[rank] = configured(frame, rank_trace, self.parser_config)
        return self._frames[rank]

    def get_all_traces(self) -> dict[int, pd.DataFrame]:
        """Return {rank: frame}."""
        return {rank: self.get_trace(rank) for rank in self.get_ranks()}

    def get_trace_duration(self, rank: int | None = None) -> float:
        """Return the microseconds from the first start to the last end of a rank; by default of the first rank."""
        events = self.get_trace(self.get_ranks()[0] if rank is None else rank)
        return float(events["end"].max() - events["ts"].min()) if len(events) else 0.0

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """Return the moment from which `ts` counts, in nanoseconds since 1970: the same for all ranks."""
        self._rank(rank)
        return self._origin_ns

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """Return the content of a rank's file as Python's json reads it.

        Raises:
            UnknownRankError: there is no such rank.
            InvalidOptionError: the file is compressed with zstd, or is no valid JSON as it stands.
        """
        path = located(self._rank(rank).source)
        content = path.read_bytes()
        try:
            text = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
            raw: dict[str, Any] | list[Any] = json.loads(text)
        except (ValueError, OSError, EOFError) as error:
            message = f"{path} is no valid JSON as it stands, plain or gzip: {error}; hta check says what is wrong"
            raise InvalidOptionError(message) from error
        return raw if isinstance(raw, dict) else {"traceEvents": raw}

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:  # noqa: FBT001, FBT002 -- HTA's signature
        """Add `s_name`, shortened if asked for, and `s_cat` to the frame of every rank."""
        for frame in self.get_all_traces().values():
            decode_symbol_id_to_symbol_name(frame, self.symbol_table, use_shorten_name)

    def get_device_type(self) -> str:
        """Return whose devices the first rank used: `NVIDIA GPU`, `AMD GPU`, `MTIA` or `UNKNOWN GPU`."""
        return device_type(self._rank(None))

    def write_raw_trace(self, output_file: str, trace_contents: dict[str, Any]) -> None:
        """Write what `get_raw_trace_for_one_rank` returned, or a changed copy, as gzip, whatever the name of the file.

        Raises:
            InvalidOptionError: the file exists, or its folder cannot be written.
        """
        with new_file(located(output_file)) as file:
            text = event_text(trace_contents).encode()
            file.write(text if output_file.endswith(".gz") else gzip.compress(text, mtime=0))

    def convert_time_series_to_events(
        self, series: pd.DataFrame, counter_name: str, counter_col: str
    ) -> list[dict[str, Any]]:
        """Return counter events, in the time of the files, for a frame with `ts`, `pid` and a column of values.

        They can be appended to the `traceEvents` of `get_raw_trace_for_one_rank`.
        """
        start = (self._origin_ns - self._rank(None).header.base_time_ns) / 1_000
        return [
            {"ph": "C", "name": counter_name, "pid": pid, "ts": start + ts, "args": {counter_name: value}}
            for pid, ts, value in zip(
                series["pid"].tolist(), series["ts"].tolist(), series[counter_col].tolist(), strict=True
            )
        ]

    @staticmethod
    def flow_event(  # noqa: PLR0913, PLR0917 -- HTA's signature
        id: int,  # noqa: A002
        pid: int,
        tid: int,
        ts: float,
        is_start: bool,  # noqa: FBT001
        name: str,
        cat: str,
        args: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return one end of an arrow as an event: where it leaves, or where it arrives."""
        event: dict[str, Any] = {"ph": "s" if is_start else "f", "id": id, "pid": pid, "tid": tid, "ts": ts}
        event |= {"cat": cat, "name": name}
        event |= {} if args is None else {"args": args}
        return event if is_start else event | {"bp": "e"}

    def _show(self, trace: Trace) -> None:
        """Be the view of this trace from now on."""
        self.trace = trace
        self.trace_files: dict[int, str] = {rank: each.source for rank, each in trace.ranks.items()}
        self._frames: dict[int, pd.DataFrame] = {}
        for cached in ("symbol_table", "_origin_ns"):
            self.__dict__.pop(cached, None)

    @cached_property
    def _origin_ns(self) -> int:
        return origin_ns(self.trace)

    def _rank(self, rank: int | None) -> RankTrace:
        chosen = self.get_ranks()[0] if rank is None else rank
        return self.trace.select([chosen]).ranks[chosen]
