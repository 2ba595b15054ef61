"""`TraceAnalysis.t`, with the interface of HTA's `Trace`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holotrace.enrich.job.job_time import origin_ns
from holotrace.enrich.steps.steps import steps
from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.export.event_json import event_text
from holotrace.export.new_file import new_file
from holotrace.locations import located
from holotrace.store.trace import RankTrace, Trace
from hta.configs.parser_config import ParserConfig
from hta.facade.imports.later import called_later
from hta.facade.imports.modules_later import pd
from hta.facade.results.times import in_microseconds
from hta.facade.trace.arg_columns import configured
from hta.facade.trace.device_type import device_type
from hta.facade.trace.frames_by_rank import Fingerprint, FramesByRank
from hta.facade.trace.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta.facade.trace.trace_frame import symbol_table, trace_frame

if TYPE_CHECKING:
    from hta.facade.trace.edited_rank import edited_rank, expect_steps_as_announced
else:
    edited_rank, expect_steps_as_announced = called_later(
        dict.fromkeys(("edited_rank", "expect_steps_as_announced"), "hta.facade.trace.edited_rank")
    ).values()

_GZIP_MAGIC = b"\x1f\x8b"


class TraceView:
    """The trace behind `TraceAnalysis`, with the attributes and methods of HTA's `Trace`.

    trace_path     the folder, as given
    trace_files    {rank: file}
    meta_data      {rank: top-level keys of the file except traceEvents}
    parser_config  which args are columns of the frames
    is_parsed      True
    """

    is_parsed = True
    _is_aligned = True

    def __init__(self, trace: Trace, trace_path: str, parser_config: ParserConfig | None = None) -> None:
        self.trace_path = trace_path
        self.parser_config = ParserConfig.get_default_cfg() if parser_config is None else parser_config
        self._show(trace)

    @property
    def trace(self) -> Trace:
        """The trace that analyses read: the opened trace, usually without its last step.

        If a rank's frame was changed or replaced, the analyses see the events of that frame.

        Raises:
            InvalidOptionError: a frame has changes that analyses cannot use.
        """
        changed = self.traces.changed(all_of_them=self._are_texts_changed())
        if not changed and list(self.traces) == list(self._recorded.ranks):
            return self._recorded
        texts = hash(tuple(self.symbol_table.get_sym_table()))
        ranks = {
            rank: self._edited(rank, *changed[rank], texts) if rank in changed else self._recorded.ranks[rank]
            for rank in self.traces
        }
        return Trace(ranks, self._recorded.skipped, self._recorded.on_error)

    @property
    def trace_by_steps(self) -> Trace:
        """`trace`, after checking that the column `iteration` of each frame agrees with its step events.

        Raises:
            InvalidOptionError: the column `iteration` of a frame disagrees with the step events of the frame.
        """
        trace = self.trace
        for rank_trace in trace.ranks.values():
            expect_steps_as_announced(rank_trace)
        return trace

    @property
    def traces(self) -> FramesByRank:
        """The frame of every rank. If a script assigns or changes a frame, all later analyses use that frame."""
        return self._frames

    @traces.setter
    def traces(self, frames: Mapping[int, pd.DataFrame]) -> None:
        self._frames = FramesByRank((), self._frame)
        self._frames.update(frames)

    @cached_property
    def meta_data(self) -> dict[int, dict[str, Any]]:
        """The top-level keys of each rank's file, plus `device_type`, the vendor of its devices."""
        return {
            rank: {**rank_trace.header.raw, "device_type": device_type(rank_trace)}
            for rank, rank_trace in self._recorded.ranks.items()
        }

    @cached_property
    def symbol_table(self) -> TraceSymbolTable:
        """Maps the ids in the columns `cat` and `name` of all ranks to text; scripts may assign another table."""
        return TraceSymbolTable.clone(self._numbering)

    @cached_property
    def _numbering(self) -> TraceSymbolTable:
        """The symbol table used to create frames."""
        return symbol_table(self._recorded)

    @property
    def min_ts(self) -> float:
        """The start of the job's first event, where `ts` is 0, in microseconds on the clock of the files.

        Before the traces are aligned, the value is 0.
        """
        if not self._is_aligned:
            return 0
        base_ns = next((rank_trace.header.base_time_ns for rank_trace in self._recorded.ranks.values()), 0)
        return in_microseconds(self.origin_ns - base_ns)

    @cached_property
    def origin_ns(self) -> int:
        """The start of the job's first event, in nanoseconds since 1970."""
        return origin_ns(self._recorded)

    def get_ranks(self) -> list[int]:
        """Return the ranks in ascending order."""
        return sorted(self.traces)

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """Return a rank's step numbers in ascending order, by default for the first rank.

        Raises:
            UnknownRankError: the rank does not exist.
        """
        return sorted(set(steps(self._rank(rank))["step"].to_list()))

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return the events of a rank; see `hta.facade.trace.trace_frame`.

        Every call returns the same frame. If a script changes the frame's rows, later analyses use the changes; columns that a
        script adds are kept.

        Raises:
            UnknownRankError: the rank does not exist.
        """
        return self.traces[rank]

    def get_all_traces(self) -> FramesByRank:
        """Return {rank: frame}; the same as `traces`."""
        return self.traces

    def get_trace_duration(self, rank: int | None = None) -> float:
        """Return the µs from the earliest start to the latest end of a rank's events, by default the first rank's."""
        events = self.get_trace(self.get_ranks()[0] if rank is None else rank)
        return float(events["end"].max() - events["ts"].min()) if len(events) else 0.0

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """Return the time at which `ts` is 0, in nanoseconds since 1970; the same for all ranks."""
        if rank not in self.traces:
            raise UnknownRankError.from_available(rank, self.traces)
        return self.origin_ns

    def frame_origin_ns(self, rank: int) -> int:
        """Return the time at which `ts` of a rank's frame is 0, in nanoseconds since 1970.

        `ts` is 0 at the start of the job's first event or, before the traces are aligned, at the start of the file's clock.
        """
        recorded = self._recorded.ranks.get(rank)
        return self.origin_ns if self._is_aligned or recorded is None else recorded.header.base_time_ns

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """Return the parsed JSON of a rank's file.

        Raises:
            UnknownRankError: the rank does not exist.
            InvalidOptionError: the file is compressed with zstd, or is not valid JSON.
        """
        path = located(self._rank(rank).source)
        content = path.read_bytes()
        try:
            text = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
            raw: dict[str, Any] | list[Any] = json.loads(text)
        except (ValueError, OSError, EOFError) as error:
            message = f"{path} is not valid JSON, plain or gzip: {error}; run `holotrace check` for details"
            raise InvalidOptionError(message) from error
        return raw if isinstance(raw, dict) else {"traceEvents": raw}

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:  # noqa: FBT001, FBT002 -- HTA's signature
        """Add `s_name`, optionally shortened, and `s_cat` to the frame of every rank."""
        for frame in self.get_all_traces().values():
            decode_symbol_id_to_symbol_name(frame, self.symbol_table, use_shorten_name)

    def get_device_type(self) -> str:
        """Return the vendor of the first rank's devices: `NVIDIA GPU`, `AMD GPU`, `MTIA` or `UNKNOWN GPU`."""
        return str(self.meta_data[self.get_ranks()[0]]["device_type"])

    def write_raw_trace(self, output_file: str, trace_contents: dict[str, Any]) -> None:
        """Write the result of `get_raw_trace_for_one_rank`, changed or not; uses gzip, whatever the file name.

        Replaces an existing file.

        Raises:
            InvalidOptionError: the folder is not writable.
        """
        with new_file(located(output_file), overwrite=True) as file:
            text = event_text(trace_contents).encode()
            file.write(text if output_file.endswith(".gz") else gzip.compress(text, mtime=0))

    def convert_time_series_to_events(
        self, series: pd.DataFrame, counter_name: str, counter_col: str
    ) -> list[dict[str, Any]]:
        """Convert a frame with `ts`, `pid` and a column of values to counter events on the clock of the files.

        To show the counters, append the events to the `traceEvents` of `get_raw_trace_for_one_rank` and write the result.
        """
        return [
            {"ph": "C", "name": counter_name, "pid": pid, "ts": self.min_ts + ts, "args": {counter_name: value}}
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
        """Return the start or the end of a flow arrow as an event."""
        event: dict[str, Any] = {"ph": "s" if is_start else "f", "id": id, "pid": pid, "tid": tid, "ts": ts}
        event |= {"cat": cat, "name": name}
        event |= {} if args is None else {"args": args}
        return event if is_start else event | {"bp": "e"}

    def _show(self, trace: Trace) -> None:
        """Show `trace` from now on, and discard everything that was cached for the previous trace."""
        self._recorded = trace
        self.trace_files: dict[int, str] = {rank: rank_trace.source for rank, rank_trace in trace.ranks.items()}
        self._frames = FramesByRank(trace.ranks, self._frame)
        self._edits: dict[int, tuple[object, RankTrace]] = {}
        for cached in ("meta_data", "symbol_table", "_numbering", "origin_ns"):
            self.__dict__.pop(cached, None)

    def _frame(self, rank: int) -> pd.DataFrame:
        rank_trace = self._recorded.ranks[rank]
        frame = trace_frame(rank_trace, self._numbering, self.frame_origin_ns(rank))
        return configured(frame, rank_trace, self.parser_config)

    def _are_texts_changed(self) -> bool:
        """Return whether any symbol id that existed when the frames were created now stands for a different text."""
        if "symbol_table" not in self.__dict__:  # no script has read or replaced the table
            return False
        made = self._numbering.get_sym_table()
        return self.symbol_table.get_sym_table()[: len(made)] != made

    def _edited(self, rank: int, frame: pd.DataFrame, version: Fingerprint, texts: int) -> RankTrace:
        """Return a rank with the events of its frame, cached until the frame or the symbol table changes."""
        known = (version, texts)
        if rank not in self._edits or self._edits[rank][0] != known:
            recorded = self._recorded.ranks.get(rank)
            made = edited_rank(rank, frame, recorded, self.symbol_table, self.frame_origin_ns(rank))
            self._edits[rank] = (known, made)
        return self._edits[rank][1]

    def _rank(self, rank: int | None) -> RankTrace:
        chosen = self.get_ranks()[0] if rank is None else rank
        return self.trace.select([chosen]).ranks[chosen]
