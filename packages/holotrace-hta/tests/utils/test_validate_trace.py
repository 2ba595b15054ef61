"""`validate_trace_format` checks the args in a file as HTA does."""

from __future__ import annotations

import json

import pytest

from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from hta.utils.validate_trace import get_argument_spec, validate_trace_format
from hta_goldens import FILES

LEVELS = ["minimal", "standard", "complete"]


@pytest.mark.parametrize("name", ["trace_filter", "triton_example", "amd_trace", "cpu_only", "critical_path_alexnet"])
@pytest.mark.parametrize("level", LEVELS)
def test_the_check_equals_htas(real_traces, goldens, name, level) -> None:
    """The verdict, the unknown args and the args with values of the wrong type equal HTA's."""
    path = goldens / "hta" / name / f"validate_trace_format.{level}.json"
    for rank, (is_well, errors) in json.loads(path.read_text(encoding="utf-8")).items():
        (file,) = real_traces.glob(FILES[name][int(rank)])
        ours = validate_trace_format(str(file), level, ignore_missing_arguments=False)
        assert ours[0] == is_well
        assert ours[1].get("skipped_arguments", {}) == errors.get("skipped_arguments", {})
        assert set(ours[1].get("type_violations", {})) == set(errors.get("type_violations", {}))


def test_types_and_shapes_are_checked(tmp_path) -> None:
    """An integer is a valid float, but 1.5 is not a valid integer; unknown args pass by default."""
    builder = TraceBuilder()
    builder.operator("a", start_us=0, duration_us=1, args={"External id": "x", "odd": 1, "memory bandwidth (GB/s)": 3})
    builder.operator("b", start_us=1, duration_us=1, args={"stream": 1.5})
    builder.event(ph="X", name="c", cat="cpu_op", pid=1, tid=1, ts=2, dur=1, args=[1])
    (path,) = builder.write(tmp_path)
    is_well, errors = validate_trace_format(str(path))
    assert not is_well
    assert errors == {
        "args_data_type": "the args of an event are not an object: [1]",
        "type_violations": {"External id": "'x' is not of type Int", "stream": "'1.5' is not of type Int"},
    }
    assert validate_trace_format(str(path), "minimal", ignore_missing_arguments=False)[1]["skipped_arguments"] == {
        "External id": 1,
        "odd": 1,
        "memory bandwidth (GB/s)": 1,
    }


def test_a_sound_file_and_one_that_cannot_be_read(tmp_path) -> None:
    """A valid file passes, a missing file fails, and an unknown level is an error."""
    (path,) = TraceBuilder().operator("a", start_us=0, duration_us=1).write(tmp_path)
    assert validate_trace_format(str(path), "default") == (True, {})
    assert list(validate_trace_format(str(tmp_path / "nothing.json"))[1]) == ["trace_read_error"]
    with pytest.raises(InvalidOptionError, match="minimal, standard"):
        get_argument_spec("most")
