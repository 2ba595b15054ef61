"""HTA's configuration: which event args become columns of `analyzer.t.get_trace(rank)`.

A configuration changes only the frames that `get_trace` returns. Analyses do not depend on it, because the reader keeps
every arg. The options of HTA's parsers (back end, memory, skipped events) are accepted but have no effect, because
there is only one parser.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar

from holotrace.errors import InvalidOptionError
from hta.configs.default_values import (
    AVAILABLE_ARGS,
    EVENT_ARGS,
    AttributeSpec,
    EventArgs,
    ValueType,
    YamlVersion,
    v1_0_0,
)

__all__ = [
    "AVAILABLE_ARGS",
    "DEFAULT_PARSE_VERSION",
    "DEFAULT_VER_EVENT_ARGS",
    "MAX_EVENT_DURATION_US",
    "AttributeSpec",
    "EventArgs",
    "ParserBackend",
    "ParserConfig",
    "TraceType",
    "ValueType",
    "YamlVersion",
    "v1_0_0",
]

DEFAULT_PARSE_VERSION = v1_0_0
MAX_EVENT_DURATION_US = 7 * 24 * 3_600 * 1_000_000
"""One week in microseconds. HTA drops longer events; holotrace keeps them."""
DEFAULT_VER_EVENT_ARGS = EVENT_ARGS

_IN_BRACKETS = re.compile(r"\(.*?\)")
_SEPARATORS = re.compile(r"[\s\-/.%_]+")
_EMPTY: dict[ValueType, Any] = {ValueType.Int: 0, ValueType.Float: 0.0, ValueType.String: "", ValueType.Object: None}


class ParserBackend(str, Enum):
    """The names of HTA's parsers; holotrace-hta uses the same parser for each name."""

    JSON = "json"
    IJSON = "ijson"
    IJSON_BATCHED = "ijson_batched"
    IJSON_BATCH_AND_COMPRESS = "ijson_batch_and_compress"


class TraceType(str, Enum):
    """The traced workload; has no effect."""

    Training = "training"
    TrainingWoProfilerstepAnnot = "training_wo_profilerstep_annot"
    Inference = "inference"


class ParserConfig:
    """Selects which event args become columns.

    Args:
        args: the columns; by default `ARGS_DEFAULT`.
        user_provide_trace_type: stored but not used.
        version: stored but not used, because there is only one list of args.
        parse_all_args: add a column for every arg in the rank's events.
        selected_arg_keys: the names of the columns in `args` that frames contain; by default all.
        skip_event_types: stored but not used.
        convert_ts_to_integer: stored but not used, because times are always exact.

    Raises:
        InvalidOptionError: a selected name is not among the columns.
    """

    ARGS_INPUT_SHAPE: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_INPUT_SHAPE
    ARGS_BANDWIDTH: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_BANDWIDTH
    ARGS_SYNC: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_SYNC
    ARGS_MINIMUM: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_MINIMUM
    ARGS_COMPLETE: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_COMPLETE
    ARGS_INFO: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_INFO
    ARGS_COMMUNICATION: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_COMMUNICATION
    ARGS_TRITON_KERNELS: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_TRITON_KERNELS
    ARGS_DEFAULT: ClassVar[list[AttributeSpec]] = EVENT_ARGS.ARGS_DEFAULT
    DEFAULT_MIN_REQUIRED_COLS: ClassVar[list[str]] = ["ts", "dur", "name", "cat", "pid", "tid"]

    _default: ClassVar[ParserConfig | None] = None

    def __init__(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        args: Iterable[AttributeSpec] | None = None,
        user_provide_trace_type: TraceType | None = None,
        version: YamlVersion = v1_0_0,
        parse_all_args: bool = False,  # noqa: FBT001, FBT002
        selected_arg_keys: list[str] | None = None,
        skip_event_types: set[str] | None = None,
        convert_ts_to_integer: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        self.arg_map: dict[str, AttributeSpec] = {}
        self.user_provide_trace_type = user_provide_trace_type
        self.version = version
        self.parse_all_args = parse_all_args
        self.convert_ts_to_integer = convert_ts_to_integer
        self.parser_backend: ParserBackend | None = None
        self.trace_memory = False
        self.drop_gpu_user_annotation = True
        self.min_required_cols = list(self.DEFAULT_MIN_REQUIRED_COLS)
        self.max_event_duration_us = MAX_EVENT_DURATION_US
        self.selected_arg_keys: list[str] | None = None
        self.set_skip_event_types(skip_event_types)
        self.add_args(self.ARGS_DEFAULT if args is None else args)
        self.set_args_selector(selected_arg_keys)

    def __repr__(self) -> str:
        """Show the columns."""
        shown = {"parse_all_args": self.parse_all_args, "parser_backend": self.parser_backend, "version": self.version}
        options = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"ParserConfig(args={[spec.name for spec in self.get_args()]}, {options})"

    @property
    def args(self) -> list[AttributeSpec]:
        """All columns of the configuration, selected or not."""
        return list(self.arg_map.values())

    def clone(self) -> ParserConfig:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def get_fingerprint_key(self) -> tuple[tuple[str, ...], bool]:
        """Return a key that is equal for configurations with the same columns."""
        return tuple(sorted(spec.name for spec in self.get_args())), self.parse_all_args

    def get_args(self) -> list[AttributeSpec]:
        """Return the columns to show."""
        chosen = self.arg_map if self.selected_arg_keys is None else self.selected_arg_keys
        return [self.arg_map[name] for name in chosen]

    def set_args(self, args: Iterable[AttributeSpec]) -> None:
        """Replace the columns."""
        self.arg_map = {spec.name: spec for spec in list(args)}

    def add_args(self, args: Iterable[AttributeSpec]) -> None:
        """Add columns; a column whose name already exists is not replaced."""
        for spec in list(args):
            self.arg_map.setdefault(spec.name, spec)

    def set_args_selector(self, selected_arg_keys: list[str] | None = None) -> ParserConfig:
        """Show only the columns with these names (all columns if None); return the configuration."""
        unknown = [name for name in selected_arg_keys or () if name not in self.arg_map]
        if unknown:
            message = (
                f"{unknown[0]!r} is not a column of this configuration; its columns are: {', '.join(self.arg_map)}"
            )
            raise InvalidOptionError(message)
        self.selected_arg_keys = selected_arg_keys
        return self

    def set_parse_all_args(self, parse_all_args: bool) -> ParserConfig:  # noqa: FBT001 -- HTA's signature
        """Set whether every arg becomes a column; return the configuration."""
        self.parse_all_args = parse_all_args
        return self

    def set_parser_backend(self, parser_backend: ParserBackend) -> None:
        """Store a parser's name; it has no effect, because there is only one parser."""
        self.parser_backend = parser_backend

    def set_trace_memory(self, trace_memory: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Store the option; it has no effect, because memory use is always bounded."""
        self.trace_memory = trace_memory

    def set_skip_event_types(self, skip_event_types: set[str] | None = None) -> ParserConfig:
        """Store the option and return the configuration; the option has no effect, because no events are skipped."""
        self.skip_event_types = {"python_function"} if skip_event_types is None else skip_event_types
        return self

    def set_min_required_cols(self, cols: list[str]) -> None:
        """Store the option; it has no effect, because every frame has these columns."""
        self.min_required_cols = cols

    def get_min_required_cols(self) -> list[str]:
        """Return the columns that `set_min_required_cols` stored."""
        return self.min_required_cols

    def set_drop_gpu_user_annotation(self, should_drop: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Store the option; it has no effect, as in HTA."""
        self.drop_gpu_user_annotation = should_drop

    @classmethod
    def get_default_cfg(cls) -> ParserConfig:
        """Return a copy of the default configuration."""
        return ParserConfig() if cls._default is None else cls._default.clone()

    @classmethod
    def set_default_cfg(cls, cfg: ParserConfig) -> None:
        """Set the default configuration of this process."""
        ParserConfig._default = cfg.clone()

    @classmethod
    def get_versioned_cfg(cls, version: YamlVersion) -> ParserConfig:
        """Return a configuration with the default columns, which are the same for every version."""
        return cls(cls.get_default_args(version), version=version)

    @classmethod
    def set_global_parser_config_version(cls, version: YamlVersion) -> None:
        """Make `get_versioned_cfg(version)` the default configuration."""
        cls.set_default_cfg(cls.get_versioned_cfg(version))

    @classmethod
    def get_minimum_args(cls, version: YamlVersion = v1_0_0) -> list[AttributeSpec]:  # noqa: ARG003 -- HTA's signature
        """Return the columns `stream` and `correlation`."""
        return list(cls.ARGS_MINIMUM)

    @classmethod
    def get_default_args(cls, version: YamlVersion = v1_0_0) -> list[AttributeSpec]:  # noqa: ARG003 -- HTA's signature
        """Return the columns that a frame has by default."""
        return list(cls.ARGS_DEFAULT)

    @classmethod
    def get_info_args(cls, version: YamlVersion = v1_0_0) -> list[AttributeSpec]:  # noqa: ARG003 -- HTA's signature
        """Return the args of process and thread metadata events."""
        return list(cls.ARGS_INFO)

    @classmethod
    def enable_communication_args(cls, cfg: ParserConfig | None = None, version: YamlVersion = v1_0_0) -> ParserConfig:
        """Add the args of collectives to `cfg`, by default a new configuration with the default columns; return it."""
        extended = cls.get_versioned_cfg(version) if cfg is None else cfg
        extended.add_args(cls.ARGS_COMMUNICATION)
        return extended

    @classmethod
    def get_all_available_args(cls) -> dict[str, AttributeSpec]:
        """Return the args that HTA reads as columns, keyed by HTA's names."""
        return dict(AVAILABLE_ARGS)

    @classmethod
    def show_available_args(cls) -> None:
        """Print the args that HTA reads as columns, with HTA's names."""
        for key, spec in sorted(AVAILABLE_ARGS.items()):
            print(f"{key}: {spec}")  # noqa: T201 -- its purpose is to print

    @staticmethod
    def transform_arg_name(arg: str) -> str:
        """Return the column name of an arg that HTA does not list: lower case, words joined by `_`, no brackets."""
        name = _SEPARATORS.sub("_", _IN_BRACKETS.sub("", arg).lower()).strip("_")
        return "arg_name" if name == "name" else name

    @classmethod
    def make_attribute_spec(
        cls, raw_name: str, value: object, min_supported_version: YamlVersion = v1_0_0
    ) -> AttributeSpec:
        """Return a column for an arg that HTA does not list, with a type inferred from a value."""
        types = ((int, ValueType.Int), (float, ValueType.Float), (str, ValueType.String))
        value_type = next((kind for python, kind in types if isinstance(value, python)), ValueType.Object)
        return AttributeSpec(
            cls.transform_arg_name(raw_name), raw_name, value_type, _EMPTY[value_type], min_supported_version
        )

    @classmethod
    def infer_attribute_specs(
        cls, args: Iterable[Any], reference_specs: Mapping[str, AttributeSpec] | None = None
    ) -> dict[str, AttributeSpec]:
        """Return {arg: column} for all args in a series of dicts; columns in `reference_specs` are reused."""
        values: dict[str, object] = {}
        for args_of_event in args:
            if isinstance(args_of_event, Mapping):  # an event without args has NaN or None
                for name, value in args_of_event.items():
                    values.setdefault(name, value)
        known = {spec.raw_name: spec for spec in (reference_specs or {}).values() if spec.raw_name in values}
        return known | {
            name: cls.make_attribute_spec(name, value) for name, value in values.items() if name not in known
        }
