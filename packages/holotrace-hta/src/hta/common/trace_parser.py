"""Reads single files, at HTA's import path. There is only one parser; all names of HTA's parsers refer to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import IO, TYPE_CHECKING, Any

from hta.common.trace import parse_trace_dict, parse_trace_file
from hta.configs.parser_config import DEFAULT_PARSE_VERSION, ParserBackend, ParserConfig
from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import pd
from hta.facade.trace.device_type import UNKNOWN, is_mtia, vendor_of
from hta.facade.trace.symbols import TraceSymbolTable

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

__all__ = [
    "DEFAULT_PARSE_VERSION",
    "MetaDataKey",
    "get_default_trace_parsing_backend",
    "infer_gpu_type",
    "parse_metadata_ijson",
    "parse_trace_dataframe",
    "parse_trace_dict",
    "set_default_trace_parsing_backend",
]

_chosen = [ParserBackend.JSON]


class MetaDataKey(Enum):
    """Keys that `meta_data` has in addition to the keys from the file."""

    DEVICE_TYPE = "device_type"

    def __str__(self) -> str:
        """Return the key."""
        return self.value


def parse_trace_dataframe(
    trace_file_path: str, cfg: ParserConfig
) -> tuple[dict[str, Any], pd.DataFrame, TraceSymbolTable]:
    """See `hta.common.trace.parse_trace_file`."""
    return parse_trace_file(trace_file_path, cfg)


def parse_metadata_ijson(fh: IO[bytes]) -> dict[str, Any]:
    """Return the top-level keys of an open trace file, without its events."""
    content: dict[str, Any] = json.load(fh)
    return {key: value for key, value in content.items() if key != "traceEvents"}


def infer_gpu_type(metadata: Mapping[str, Any] | None = None, name_set: Iterable[str] | None = None) -> str:
    """Return the vendor of a trace's devices: `NVIDIA GPU`, `AMD GPU`, `MTIA` or `UNKNOWN GPU`.

    Args:
        metadata: the file's top-level keys.
        name_set: event names.
    """
    if is_mtia(metadata or {}):
        return "MTIA"
    return UNKNOWN if name_set is None else vendor_of(list(name_set))


def set_default_trace_parsing_backend(parser_backend: ParserBackend) -> None:
    """Store a parser's name; it has no effect, because there is only one parser."""
    _chosen[:] = [parser_backend]


def get_default_trace_parsing_backend() -> ParserBackend:
    """Return the name that `set_default_trace_parsing_backend` stored."""
    return _chosen[0]
