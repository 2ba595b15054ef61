"""The pages return their figures, tables and selectors to browser-like requests."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from html import escape

import polars as pl
import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_ag_grid", reason="the extra web is not installed")
pytest.importorskip("dash_mantine_components", reason="the extra web is not installed")

from holotrace.catalogue import ANALYSES
from holotrace.drawing.theme import SURFACES
from holotrace.figures import figure_of
from holotrace.testing.builder import TraceBuilder
from holotrace.web.pages import PAGES
from holotrace.web.server.server import Address, guarded
from holotrace.web.shell.app import MOST_REQUEST_BYTES
from holotrace.web.shell.scripts import ASSETS, assets_path
from jobs import MARKUP, cpu_job, gpu_job
from matrices import slow_except
from web_client import WebClient, components, page_links, texts


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> WebClient:
    """Serve two runs: the small GPU job and a CPU job."""
    folder = tmp_path_factory.mktemp("runs")
    gpu_job().write(folder / "gpu")
    cpu_job().write(folder / "the cpu")
    return WebClient(folder)


@pytest.fixture(scope="module")
def gpu(client) -> str:
    """Return `run=…` with the id of the GPU job."""
    return f"run={client.session.runs[0].id}"


@pytest.fixture(scope="module")
def cpu(client) -> str:
    """Return `run=…` with the id of the CPU job."""
    return f"run={client.session.runs[1].id}"


def test_every_analysis_has_a_page() -> None:
    """Each analysis in the catalogue has a page, and no two pages have the same name."""
    assert {analysis.name for analysis in ANALYSES} <= {page.name for page in PAGES}
    assert len({page.name for page in PAGES}) == len(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_appears_at_once_with_its_question(client, gpu, page) -> None:
    """A page shows its title, its question and the navigation before anything is computed."""
    shown = client.page(f"?view={page.name}&{gpu}")
    assert {page.title, page.question} <= set(texts(shown["page"]))
    links = {link["href"]: link["title"] for link in page_links(shown)}
    assert links[f"?view={page.name}&{gpu}"] == page.title
    assert len(links) == len(PAGES)


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_the_page_of_an_analysis_shows_its_answer_figure_and_tables(client, gpu, analysis) -> None:
    """The page of an analysis shows its answer, its figure, one table per view, and the definitions of its terms."""
    query = f"?view={analysis.name}&{gpu}"
    shown = client.page(query)["page"]
    assert {term for term, _ in analysis.definitions} <= set(texts(shown))
    part = client.part(query, analysis.name)
    figures = components(part, "Graph")
    if not figures:
        assert "Not in this recording" in texts(part)
        return
    result = analysis.compute(client.session.trace(_scope(client)))
    assert figures[0]["figure"]["data"] == json.loads(figure_of(analysis.name, result).to_json())["data"]
    assert result.answer in texts(part)
    assert [text for text in texts(part) if text in {view.caption for view in analysis.views}] == [
        view.caption for view in analysis.views
    ]


def test_a_figure_has_the_colours_of_the_page(client, gpu) -> None:
    """On a dark page, figures are requested with dark colours."""
    part = client.part(f"?view=idle_time&{gpu}", "idle_time", scheme="dark")
    colour = components(part, "Graph")[0]["figure"]["layout"]["template"]["layout"]["paper_bgcolor"]
    assert colour == SURFACES["dark"].background


def test_pages_and_figures_have_the_same_surface() -> None:
    """For both colour schemes, the style sheet has the background and text colours of the figures."""
    style = ASSETS.joinpath("style.css").read_text(encoding="utf-8")
    for theme, surface in SURFACES.items():
        assert (
            f'"{theme}"] {{ --mantine-color-body: {surface.background}; --mantine-color-text: {surface.text}' in style
        )


def test_a_page_names_what_was_not_recorded(client, cpu) -> None:
    """For a CPU job, the idle-time page says to record with ProfilerActivity.CUDA."""
    part = client.part(f"?view=idle_time&{cpu}", "idle_time")
    assert any("Record with ProfilerActivity.CUDA" in text for text in texts(part))


def test_a_page_whose_tables_are_empty_says_why(client, gpu) -> None:
    """Without memory events, the memory page says what to record and shows no figure or table."""
    part = client.part(f"?view=memory_timeline&{gpu}", "memory_timeline")
    assert any("record with profile_memory=True" in text for text in texts(part))
    assert not components(part, "Graph")
    assert not components(part, "AgGrid")


def test_the_overview_of_a_cpu_job_shows_its_cpu_side(client, cpu) -> None:
    """The overview of a CPU job says that there is no GPU work, and shows one row per rank."""
    part = client.part(f"?view=overview&{cpu}", "verdict")
    assert any("and no GPU work was recorded" in text for text in texts(part))
    assert client.rows(f"?view=overview&{cpu}", "overview.cpu_side", {"startRow": 0, "endRow": 9})["rowCount"] == 2


def test_a_table_returns_its_rows_sorted_searched_and_grouped(client, gpu) -> None:
    """The grid can request the rows of a table unchanged, or sorted, searched or grouped."""
    query, name = f"?view=kernel_breakdown&{gpu}", "kernel_breakdown.1"
    whole = client.rows(query, name, {"startRow": 0, "endRow": 100})
    assert [row["total_ns"] for row in whole["rowData"]] == ["140 µs", "40 µs", "10 µs"]
    by_calls = {"startRow": 0, "endRow": 1, "sortModel": [{"colId": "total_ns", "sort": "asc"}]}
    assert client.rows(query, name, by_calls) == {"rowData": [whole["rowData"][2]], "rowCount": 3}
    assert client.rows(query, name, {"startRow": 0}, search="GEMM")["rowCount"] == 1
    assert client.rows(query, name, {"startRow": 0}, by="kernel_kind")["rowCount"] == 2


def test_names_stay_text(client, gpu) -> None:
    """A kernel named `<script>…` is text in the table and escaped in the figure."""
    rows = client.rows(f"?view=kernel_breakdown&{gpu}", "kernel_breakdown.1", {"startRow": 0, "endRow": 9})
    assert MARKUP in [row["name"] for row in rows["rowData"]]
    part = client.part(f"?view=kernel_breakdown&{gpu}", "kernel_breakdown")
    assert MARKUP not in json.dumps(components(part, "Graph"))
    assert escape(MARKUP, quote=False).split(";")[0] in json.dumps(components(part, "Graph"))
    assert "dangerously_allow" not in json.dumps(part)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_download_has_the_rows_of_the_table_as_plain_numbers(client, gpu, form) -> None:
    """A download has the rows that match the search, with times in nanoseconds."""
    answer = client.get(f"/download/{form}/kernel_breakdown.1?view=kernel_breakdown&{gpu}&q.kernel_breakdown.1=gemm")
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet}[form]
    assert read(io.BytesIO(answer.data)).select("name", "total_ns", "call_count").rows() == [("gemm", 140_000, 2)]
    assert answer.headers["Content-Disposition"] == f'attachment; filename="kernel_breakdown.1.{form}"'


@pytest.mark.parametrize(
    "path",
    [
        "html/kernel_breakdown.1?view=kernel_breakdown",
        "csv/kernel_breakdown.9?view=kernel_breakdown",
        "csv/kernel_breakdown.1?view=idle_time",
        "csv/..%2f..%2fetc%2fpasswd?view=kernel_breakdown",
        "csv/kernel_breakdown.1?view=kernel_breakdown&run=nothing",
    ],
)
def test_nothing_else_can_be_downloaded(client, path) -> None:
    """A download gets 404 if its format, table, page or run is unknown, or if it names a path instead of a table."""
    assert client.get(f"/download/{path}").status_code == 404


def test_the_python_code_returns_the_same_result(client, gpu, monkeypatch, tmp_path) -> None:
    """For a selected rank and device, the Python code that a page shows returns the same rows as the page."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    query = f"?view=kernel_breakdown&{gpu}&ranks=1&devices=0"
    code = components(client.page(query)["page"], "Pre")[0]["children"]
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 -- the page's own code
    kernels = names["result"].per_kernel
    rows = client.rows(query, "kernel_breakdown.1", {"startRow": 0, "endRow": 9})
    assert kernels["total_ns"].to_list() == [100_000]
    assert [row["total_ns|exact"] for row in rows["rowData"]] == ["100,000 ns"]


def test_selectors_offer_the_ranks_steps_and_devices_of_the_run(client, gpu, tmp_path) -> None:
    """A page has selectors for ranks, steps and devices, each only if there is more than one to choose from."""
    (TraceBuilder().step(4, 0, 9).step(5, 9, 9).operator("aten::mm", start_us=1, duration_us=1)).write(tmp_path / "s")
    part = client.part(f"?{gpu}", "choices")
    assert [(selector["data"], selector["value"]) for selector in components(part, "MultiSelect")] == [(["0", "1"], [])]
    other = WebClient(tmp_path / "s")
    part = other.part("?steps=5", "choices")
    assert [(selector["data"], selector["value"]) for selector in components(part, "MultiSelect")] == [
        (["4", "5"], ["5"])
    ]


def test_the_spans_of_a_run_can_be_selected(tmp_path) -> None:
    """The address can select one of two recordings of a rank; the Python code on the page then opens this recording."""
    for stamp in (1700000000000, 1700000060000):
        (file,) = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path)
        file.rename(tmp_path / f"host_1.{stamp}.pt.trace.json")
    client = WebClient(tmp_path)
    run = client.session.runs[0].id
    chosen = components(client.part(f"?run={run}~1", "choices"), "Select")[0]
    assert ([span["value"] for span in chosen["data"]], chosen["value"]) == (["1", "2"], "1")
    shown = client.page(f"?view=kernel_breakdown&run={run}~1")
    assert components(shown["selectors"], "Select")[0]["value"] == run
    assert "host_1.1700000000000.pt.trace.json" in components(shown["page"], "Pre")[0]["children"]


def test_a_page_says_if_only_the_selection_lacks_the_input(tmp_path) -> None:
    """If only the selected step lacks GPU work, the page says so and links to the whole run."""
    TraceBuilder().step(1, 0, 9).kernel("gemm", start_us=1, duration_us=2, launch_us=1).step(2, 9, 9).write(
        tmp_path / "s"
    )
    part = WebClient(tmp_path / "s").part("?view=idle_time&steps=2", "idle_time")
    assert "Not in the selection" in texts(part)
    assert components(part, "Link")[0]["href"].startswith("?view=idle_time&run=")
    assert "steps" not in components(part, "Link")[0]["href"]


def test_the_overview_links_to_the_other_pages(client, gpu) -> None:
    """The overview shows the verdict, figures, advice and device use, with links to the pages of the analyses."""
    query = f"?view=overview&{gpu}"
    parts = {name: client.part(query, name) for name in ("verdict", "time", "steps", "advice", "gpus")}
    assert any("the GPUs are busy" in text for text in texts(parts["verdict"]))
    assert components(parts["time"], "Graph")
    assert "What costs time, and what to do" in texts(parts["advice"])
    links = [link["href"] for part in parts.values() for link in components(part, "Link")]
    assert {f"?view=temporal_breakdown&{gpu}", f"?view=step_time&{gpu}", f"?view=gpu_summary&{gpu}"} <= set(links)
    assert client.rows(query, "overview.gpus", {"startRow": 0, "endRow": 9})["rowCount"] == 2


def test_two_runs_are_compared(client, gpu, cpu) -> None:
    """The comparison page compares the selected run with the control run in the address."""
    control = cpu.removeprefix("run=")
    query = f"?view=diff&{gpu}&control={control}"
    assert texts(client.part(query, "changed"))[0].startswith("The runs cannot be compared by step")
    assert components(client.part(query, "compare_traces"), "Graph")
    rows = client.rows(query, "diff.1", {"startRow": 0, "endRow": 99})["rowData"]
    changes = {row["event|exact"]: row["change"] for row in rows}
    assert (changes["aten::mm"], changes["gemm"]) == ("deleted", "added")


def test_health_lists_files_and_skipped_files(tmp_path) -> None:
    """The health page lists the files, with rank and state, and the skipped files."""
    gpu_job().write(tmp_path / "gpu")
    (tmp_path / "gpu" / "notes.json").write_text("{}")
    again = WebClient(tmp_path / "gpu")
    assert components(again.part("?view=health", "files"), "AgGrid")
    rows = again.rows("?view=health", "health.files", {"startRow": 0, "endRow": 9})["rowData"]
    assert [(row["rank"], row["state"]) for row in rows] == [("0", "clean"), ("1", "clean")]
    skipped = again.rows("?view=health", "health.skipped", {"startRow": 0, "endRow": 9})["rowData"]
    assert [row["file"] for row in skipped] == ["notes.json"]


def test_without_a_run_a_page_names_the_expected_files(tmp_path) -> None:
    """For an empty folder, the page names torch.profiler, which writes the expected files."""
    shown = WebClient(tmp_path).page("")
    assert any("torch.profiler" in text for text in texts(shown["page"]))


@pytest.mark.parametrize(
    "query",
    slow_except(
        ["?view=no+such+page", "?run=../../etc", "?ranks=99", "?view=diff&control=x", "%%%"], ["?run=../../etc"]
    ),
)
def test_an_invalid_address_gets_an_explanation(client, query) -> None:
    """An address with an unknown page, run or rank gets a page with an explanation."""
    assert texts(client.page(query)["page"])
    assert texts(client.part(query, "choices")) is not None


def test_an_error_in_a_part_leaves_the_rest_of_the_page(client, gpu, monkeypatch, caplog) -> None:
    """If a part of a page fails, the browser gets a short notice, and only the log contains the error."""

    def broken(*_: object, **__: object) -> None:
        message = "a secret path"
        raise RuntimeError(message)

    monkeypatch.setattr(type(client.session), "result", broken)
    part = client.part(f"?view=idle_time&{gpu}", "idle_time")
    assert "the server's log has the details" in texts(part)[-1]
    assert "a secret path" not in json.dumps(part)
    assert "a secret path" in caplog.text


def test_large_requests_are_refused(client) -> None:
    """A request body above MOST_REQUEST_BYTES gets 413."""
    answer = client.http.post(
        "/_dash-update-component", data=b"x" * (MOST_REQUEST_BYTES + 1), content_type="application/json"
    )
    assert answer.status_code == 413


def test_every_address_in_the_first_page_is_relative_and_of_this_server(client) -> None:
    """All addresses in the first page are relative, so the page works under any path and needs no other host."""
    page = client.get("/").text
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert addresses
    assert all(address.startswith("./") for address in addresses)


def test_every_script_of_the_first_page_exists(client) -> None:
    """All scripts that the first page loads, from Dash and from holotrace, exist."""
    page = client.get("/").text
    scripts = re.findall(r'src="\./([^"]+)"', page)
    assert f"{assets_path()}/shell/start.js" in scripts
    assert [client.get(f"/{script}").status_code for script in scripts] == [200] * len(scripts)


def test_the_guard_protects_the_pages(client) -> None:
    """The application of `holotrace serve` refuses a foreign Host header."""
    app = guarded(client.session, Address(), None)
    seen: list[str] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_HOST": "evil.example"}
    list(app(environ, lambda status, *_: seen.append(status)))
    assert seen == ["403 Forbidden"]


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("nas", False)],  # noqa: S104
)
def test_only_loopback_addresses_work_without_a_token(host, is_loopback) -> None:
    """Loopback addresses need no token; `localhost` and the given names are valid hosts, but 0.0.0.0 is not."""
    address = Address(host, names=frozenset({"dev.example"}))
    assert address.is_loopback == is_loopback
    assert {"localhost", "dev.example"} <= address.allowed_hosts
    assert "0.0.0.0" not in address.allowed_hosts  # noqa: S104


def test_holotrace_itself_does_not_load_dash() -> None:
    """Importing holotrace and its command line imports no Dash and no Flask."""
    code = "import holotrace, holotrace.cli.group, sys; print([n for n in sys.modules if n.split('.')[0] in ('dash', 'flask')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def _scope(client: WebClient):
    from holotrace.web.session.session import Scope  # noqa: PLC0415

    return Scope(client.session.runs[0].id)
