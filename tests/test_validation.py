"""`validate` reports violations of rules that every valid trace follows."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holotrace import open_trace
from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from holotrace.validation import RULES, Violation, validate


def broken(builder: TraceBuilder) -> list[tuple[str, str, int]]:
    """Return the rule, severity and count of each violation in a job."""
    return [(violation.rule, violation.severity, violation.count) for violation in validate(builder.build())]


def sound() -> TraceBuilder:
    """Return a job without violations: two steps, and an operator that launches a kernel."""
    builder = TraceBuilder().step(1, 0, 100).operator("aten::mm", start_us=1, duration_us=20)
    builder.kernel("gemm", start_us=30, duration_us=5, launch_us=2)
    return builder.step(2, 100, 100)


def test_a_sound_job_has_no_violations(tmp_path) -> None:
    """A small job and a simulated training job have no violations."""
    assert broken(sound()) == []
    write_job(tmp_path, ranks=2, steps=2, layers=2)
    assert validate(open_trace(tmp_path, cache=False)) == ()


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (sound().operator("late", start_us=5, duration_us=-3), ("negative_duration", "error", 1)),
        (sound().kernel("early", start_us=40, duration_us=1, launch_us=50), ("starts_before_launch", "error", 1)),
        (sound().step(1, 300, 10), ("steps_out_of_order", "error", 1)),
        (sound().operator("crossing", start_us=15, duration_us=20), ("overlapping_calls", "warning", 1)),
        (sound().kernel("orphan", start_us=60, duration_us=1, correlation=77), ("orphan_correlation", "warning", 1)),
        (sound().kernel("ncclDevKernel", start_us=60, duration_us=1), ("undescribed_collective", "warning", 1)),
        (
            sound().sync("Stream Wait Event", start_us=60, duration_us=1),
            ("wait_for_unknown_event", "warning", 1),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_rule_finds_only_its_own_violation(builder, expected) -> None:
    """One bad event in a job without violations causes exactly one violation."""
    assert broken(builder) == [expected]


def test_a_violation_names_events_and_says_what_is_wrong() -> None:
    """If five events violate a rule, the violation counts them, names the first three, and explains the problem."""
    builder = TraceBuilder()
    for number in range(5):
        builder.kernel(
            f"k{number}", start_us=10 * number, duration_us=1, launch_us=10 * number + 5, correlation=number + 1
        )
    (violation,) = validate(builder.build())
    assert violation == Violation(
        0,
        "starts_before_launch",
        "error",
        5,
        "this work starts before the call that launched it: the clocks of host and device disagree",
        violation.examples,
    )
    assert [example.split(": ")[1] for example in violation.examples] == ["k0", "k1", "k2"]


def test_a_truncated_file_is_an_error(tmp_path) -> None:
    """A file cut in half violates `truncated_json` with severity `error`."""
    content = sound().json()
    (tmp_path / "rank0.json").write_bytes(content[: len(content) // 2])
    rules = [(violation.rule, violation.severity) for violation in validate(open_trace(tmp_path, cache=False))]
    assert ("truncated_json", "error") in rules


def test_an_unreadable_file_breaks_the_rule_readable(tmp_path) -> None:
    """If the file of rank 0 was deleted, rank 0 violates only the rule `readable`, and rank 1 is still checked."""
    sound().rank(1).operator("aten::mm", start_us=0, duration_us=1).write(tmp_path)
    trace = open_trace(tmp_path, cache=False)
    (tmp_path / trace.ranks[0].source).unlink()
    assert [(violation.rank, violation.rule) for violation in validate(trace)] == [(0, "readable")]


def run(folder, *options: str) -> tuple[int, str]:
    """Run `holotrace check --strict`; return the exit code and the output."""
    result = CliRunner().invoke(app, ["check", str(folder), "--strict", "--no-cache", *options])
    return result.exit_code, result.stdout


def test_only_errors_change_the_exit_code(tmp_path) -> None:
    """`check --strict` exits with 0 if there are no violations or only warnings, and with 1 if there is an error."""
    for name, builder, code in (
        ("sound", sound(), 0),
        ("warning", sound().kernel("ncclDevKernel", start_us=60, duration_us=1), 0),
        ("error", sound().step(1, 300, 10), 1),
    ):
        builder.write(tmp_path / name)
        assert run(tmp_path / name)[0] == code


def test_the_command_prints_rules_and_examples(tmp_path) -> None:
    """`check --strict` prints the violated rules as lines or as JSON."""
    sound().write(tmp_path / "sound")
    sound().step(1, 300, 10).write(tmp_path / "error")
    assert "strict: no rule is broken" in run(tmp_path / "sound")[1]
    lines = run(tmp_path / "error")[1]
    assert "error: rank 0 steps_out_of_order 1 time" in lines
    assert ": ProfilerStep#1" in lines
    (violation,) = json.loads(run(tmp_path / "error", "--json")[1])["violations"]
    assert (violation["rule"], violation["severity"]) == ("steps_out_of_order", "error")


def test_every_rule_is_documented(request) -> None:
    """The page of commands lists every rule with its severity."""
    text = (request.config.rootpath / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert [rule.name for rule in RULES if f"| `{rule.name}` | {rule.severity} |" not in text] == []
