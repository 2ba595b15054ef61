"""The entry point of the command line: errors, exit codes, and the modules that it imports."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holotrace.cli.app import _described, main
from holotrace.errors import MissingDataError
from jobs import cpu_job, gpu_job


def run_main(monkeypatch, *arguments: str) -> int:
    """Run the command line in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["holotrace", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_an_error_is_one_line_on_stderr(monkeypatch, capsys, tmp_path) -> None:
    """The error for a missing path is one line that names the path, without a traceback."""
    code = run_main(monkeypatch, "summary", str(tmp_path / "missing"))
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err.startswith(f"holotrace: {tmp_path / 'missing'} does not exist")
    assert captured.err.count("\n") == 1


def test_a_missing_rank_is_an_error(monkeypatch, capsys, tmp_path) -> None:
    """The error for an unknown rank lists the ranks of the job."""
    gpu_job().write(tmp_path)
    assert run_main(monkeypatch, "summary", str(tmp_path), "--ranks", "5", "--no-cache") == 1
    assert capsys.readouterr().err == "holotrace: there is no rank 5 in this trace; its ranks are: 0, 1\n"


def test_a_single_analysis_fails_without_gpu_work(monkeypatch, capsys, tmp_path) -> None:
    """For a job without GPU work, the error of `idle-time` says what to record."""
    cpu_job().write(tmp_path)
    assert run_main(monkeypatch, "idle-time", str(tmp_path), "--no-cache") == 1
    assert "ProfilerActivity.CUDA" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_an_error(monkeypatch, capsys, tmp_path) -> None:
    """The error for a report in a missing folder names the folder and says to create it."""
    gpu_job().write(tmp_path)
    path = tmp_path / "missing" / "report.html"
    assert run_main(monkeypatch, "report", str(tmp_path), "-o", str(path), "--no-cache") == 1
    assert capsys.readouterr().err == f"holotrace: {path.parent} is not a folder; create it first, or choose another\n"


def test_a_usage_error_has_exit_code_2(monkeypatch, capsys) -> None:
    """The malformed `--ranks 1-` exits with 2; the error shows the accepted form."""
    assert run_main(monkeypatch, "summary", "x", "--ranks", "1-") == 2
    assert "0-7,9" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown(monkeypatch, capsys) -> None:
    """`holotrace` without arguments prints its help, which lists the commands."""
    run_main(monkeypatch)
    captured = capsys.readouterr()
    output = captured.out + captured.err
    assert all(name in output for name in ("summary", "report", "check", "idle-time"))


def test_the_version_loads_no_commands() -> None:
    """`holotrace --version` loads neither the commands nor the libraries that tables and figures need."""
    program = (
        "import sys; sys.argv = ['holotrace', '--version'];"
        "from holotrace.cli.app import main; main();"
        "print([name for name in ('numpy', 'polars', 'rich', 'typer', 'holotrace.cli.group') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    version, loaded = done.stdout.splitlines()
    assert (version.split()[0], loaded) == ("holotrace", "[]")


def loaded_by(*arguments: str) -> set[str]:
    """Run a command in its own process; return the modules that it loads."""
    program = (
        f"import sys; sys.argv = ['holotrace', *{list(arguments)!r}];"
        "from holotrace.cli.app import main; main(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    return set(done.stdout.splitlines()[-1].split())


def test_the_help_loads_no_tables() -> None:
    """`holotrace --help` loads none of the analyses, nor numpy, Polars or rich."""
    assert loaded_by("--help") & {"numpy", "polars", "rich", "holotrace.cli.questions"} == set()


def test_a_command_loads_only_its_own_question(tmp_path) -> None:
    """`idle-time` loads no other analyses and no libraries for figures, SQL or remote files."""
    gpu_job().write(tmp_path)
    modules = loaded_by("idle-time", str(tmp_path), "--no-cache")
    computations = {name for name in modules if name.startswith("holotrace.analyses.") and name.endswith(".compute")}
    assert computations == {"holotrace.analyses.idle_time.compute"}
    assert modules & {"plotly", "duckdb", "fsspec", "jinja2", "holotrace.whole_job.summary"} == set()


@pytest.mark.slow
def test_tables_need_no_drawing_libraries(tmp_path) -> None:
    """Only the report and HTA's interface load plotly, jinja2 and pandas."""
    gpu_job().write(tmp_path)
    program = (
        "import sys; from holotrace.cli.group import app;"
        f"app(['summary', {str(tmp_path)!r}, '--no-cache'], standalone_mode=False);"
        "print([name for name in ('plotly', 'jinja2', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_the_command_works_as_a_process(tmp_path) -> None:
    """`python -m holotrace` prints to a pipe without progress bars or colours."""
    gpu_job().write(tmp_path)
    command = [sys.executable, "-m", "holotrace", "summary", str(tmp_path), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")  # noqa: S603
    assert done.stdout.startswith("The recording takes 75 µs")
    assert (done.stderr, "\x1b" in done.stdout) == ("", False)


@pytest.mark.slow
def test_characters_that_stdout_cannot_encode_become_question_marks(tmp_path) -> None:
    """An ASCII stdout shows `?` for other characters instead of failing with a traceback."""
    gpu_job().write(tmp_path)
    command = [sys.executable, "-m", "holotrace", "summary", str(tmp_path), "--no-cache"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="ascii", env=ascii_only)  # noqa: S603
    assert "?s" in done.stdout


def test_advice_is_another_name_of_diagnose(monkeypatch, capsys) -> None:
    """`advice`, a name from the TensorBoard plugin, prints the diagnosis; the help of `holotrace` omits this name."""
    monkeypatch.setattr(sys, "argv", ["holotrace", "advice", "--help"])
    main()
    assert "Why is the job slow" in capsys.readouterr().out


def test_an_error_names_the_option_of_the_command_line() -> None:
    """Errors of the command line say `--ranks` where Python's errors say `ranks=[...]`."""
    error = MissingDataError.no_gpu_kernels("kernels", rank=3, source="rank3.json", cpu_events=2)
    assert (_described(error) or "").endswith("Record with ProfilerActivity.CUDA, or leave the rank out with --ranks.")
