"""The configuration of the args that become columns of frames."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError
from hta.common.trace import Trace
from hta.configs.default_values import YamlVersion
from hta.configs.parser_config import AttributeSpec, ParserBackend, ParserConfig, ValueType
from hta.trace_analysis import TraceAnalysis
from jobs import gpu_job


@pytest.fixture
def default_restored():
    """Restore the default configuration of the process."""
    before = ParserConfig.get_default_cfg()
    yield
    ParserConfig.set_default_cfg(before)


def names(config: ParserConfig) -> list[str]:
    """Return the columns to show."""
    return [spec.name for spec in config.get_args()]


def test_the_lists_of_args_equal_htas(goldens) -> None:
    """The available args are those of HTA, with the same order, columns, names in the file, types and defaults."""
    theirs = json.loads((goldens / "hta" / "_misc" / "parser_config.json").read_text(encoding="utf-8"))
    available = ParserConfig.get_all_available_args()
    assert {
        key: [
            spec.name,
            spec.raw_name,
            spec.value_type.name,
            spec.default_value,
            spec.min_supported_version.get_version_str(),
        ]
        for key, spec in available.items()
    } == theirs["available"]
    assert list(available) == list(theirs["available"])
    for name, columns in theirs["lists"].items():
        assert [spec.name for spec in getattr(ParserConfig, name)] == columns
    assert {arg: ParserConfig.transform_arg_name(arg) for arg in theirs["transform"]} == theirs["transform"]


def test_a_configuration_starts_with_htas_columns_and_changes_alone() -> None:
    """Changing one configuration does not affect another, because each copies its lists."""
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args(ParserConfig.ARGS_TRITON_KERNELS)
    copy = config.clone()
    copy.set_args(copy.get_args()[:1])
    assert names(config) == ["stream", "correlation", "kernel_backend", "kernel_hash"]
    assert names(copy) == ["stream"]
    assert names(ParserConfig(ParserConfig.get_minimum_args())) == ["stream", "correlation"]
    assert names(ParserConfig()) == [spec.name for spec in ParserConfig.ARGS_DEFAULT]
    assert config.get_fingerprint_key() == (("correlation", "kernel_backend", "kernel_hash", "stream"), False)


def test_setting_the_columns_to_themselves_changes_nothing() -> None:
    """`set_args(config.args)` keeps all columns; HTA empties the list."""
    config = ParserConfig()
    config.set_args(config.args)
    assert names(config) == names(ParserConfig())


def test_columns_can_be_selected_by_name() -> None:
    """The constructor and `set_args_selector` select columns by name; HTA's constructor ignores the selected names.

    Unknown names raise errors.
    """
    assert names(ParserConfig(selected_arg_keys=["bytes"])) == ["bytes"]
    config = ParserConfig()
    config.set_args_selector(["stream"])
    assert names(config) == ["stream"]
    with pytest.raises(
        InvalidOptionError, match="'grid' is not a column of this configuration; its columns are: stream"
    ):
        config.set_args_selector(["grid"])


def test_collectives_can_be_added() -> None:
    """`enable_communication_args` adds the args of collectives after the existing columns."""
    config = ParserConfig.enable_communication_args(ParserConfig(ParserConfig.get_minimum_args()))
    assert names(config)[:4] == ["stream", "correlation", "collective_name", "in_msg_nelems"]


def test_columns_are_made_of_args() -> None:
    """Reference columns come first; others are named after their arg, whose first value sets the type and default."""
    args = pd.Series([{"a b": 1}, {"c (x)": "t"}, {"a b": 2.5, "d": [1]}, {"stream": 3, "e": 0.5}])
    reference = {"stream": ParserConfig.ARGS_MINIMUM[0]}
    specs = ParserConfig.infer_attribute_specs(args, reference)
    assert [(spec.name, spec.value_type, spec.default_value) for spec in specs.values()] == [
        ("stream", ValueType.Int, -1),
        ("a_b", ValueType.Int, 0),
        ("c", ValueType.String, ""),
        ("d", ValueType.Object, None),
        ("e", ValueType.Float, 0.0),
    ]


@pytest.mark.usefixtures("default_restored")
def test_the_default_of_the_process_applies_if_none_is_given(tmp_path) -> None:
    """`set_default_cfg` affects new `TraceAnalysis` objects and leaves existing ones unchanged."""
    gpu_job().write(tmp_path)
    before = TraceAnalysis(trace_dir=str(tmp_path))
    ParserConfig.set_default_cfg(ParserConfig(ParserConfig.get_minimum_args()))
    analyzer = TraceAnalysis(trace_dir=str(tmp_path))
    assert "bytes" not in analyzer.t.get_trace(0).columns
    assert "bytes" in before.t.get_trace(0).columns
    assert len(analyzer.get_temporal_breakdown(visualize=False)) == 2
    ParserConfig.set_global_parser_config_version(YamlVersion.from_string("1.0.0"))
    assert ParserConfig.get_default_cfg().get_args() == ParserConfig.ARGS_DEFAULT


def test_a_script_configures_a_trace(tmp_path) -> None:
    """A script can add a column to a configuration, and pass it to `Trace` or `TraceAnalysis`."""
    gpu_job().write(tmp_path)
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args([AttributeSpec("grid", "grid", ValueType.Object, "[]", YamlVersion(1, 0, 0))])
    config.set_parser_backend(ParserBackend.IJSON)
    trace = Trace(trace_dir=str(tmp_path), parser_config=config)
    trace.load_traces()
    same = TraceAnalysis(trace_dir=str(tmp_path), parser_config=config).t.get_trace(0)
    assert same.columns.equals(trace.get_trace(0).columns)
    columns = trace.get_trace(0).columns.tolist()
    assert columns[columns.index("dur") + 1 : columns.index("index_correlation")] == ["stream", "correlation", "grid"]


def test_the_known_args_can_be_printed(capsys) -> None:
    """`show_available_args` prints one line per arg."""
    ParserConfig.show_available_args()
    assert len(capsys.readouterr().out.splitlines()) == len(ParserConfig.get_all_available_args())
