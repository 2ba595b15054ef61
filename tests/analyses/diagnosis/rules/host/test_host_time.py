"""Tests of the rules about data loading and about slow Python functions."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
BACKWARD = "<built-in method run_backward of torch._C._EngineBase object at 0x7faf590c71c0>"
WAIT = "<built-in method wait of pybind11_builtins.pybind11_detail_function_record_v1 object at 0x7f254c4b5c50>"
PARSE = "<built-in method parse of pybind11_builtins.pybind11_detail_function_record_v1 object at 0x7f254c4b5c50>"


def loading_job(*, load_us: int, loader: str = LOADER) -> holotrace.Trace:
    """Return steps of 10 ms that load a batch for `load_us` and then compute."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 10_000 * number
        trace.step(number, begin, 10_000).annotation(loader, start_us=begin + 10, duration_us=load_us)
        trace.kernel("gemm", start_us=begin + load_us + 20, duration_us=9_970 - load_us, launch_us=begin + load_us + 15)
    return trace.build()


def test_loading_costs_the_idle_time() -> None:
    """The device is idle for 0.4 ms per step while the host loads a batch."""
    (case,) = cases_of(loading_job(load_us=400), "data_loading").values()

    assert case.cost_ns == 400_000


def test_the_advice_about_loading_knows_whether_workers_run() -> None:
    """The name of the loader shows whether workers run; if they do, the advice is to make them faster."""
    workers = loading_job(load_us=400, loader=LOADER.replace("SingleProcess", "MultiProcessing"))

    assert said(loading_job(load_us=400), "data_loading").advice.startswith("Load and prefetch batches in worker")
    assert said(workers, "data_loading").advice.startswith("Worker processes already load the batches")


def test_a_ready_batch_is_silent() -> None:
    """Under the profiler, fetching a ready batch takes up to 0.3 ms, so a fetch of 0.25 ms is not reported."""
    assert not cases_of(loading_job(load_us=250), "data_loading")


def function_job(name: str) -> holotrace.Trace:
    """Return steps of 1 ms in which a user function calls the function `name`, which takes 300 µs."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        trace.python(name, start_us=begin + 10, duration_us=300)
        trace.kernel("gemm", start_us=begin + 320, duration_us=679, launch_us=begin + 312)
    return trace.build()


@pytest.mark.parametrize("name", ["<built-in function sleep>", PARSE])
def test_a_slow_function_costs_the_idle_time(name: str) -> None:
    """The device is idle for 307 µs around the function; recording two functions takes 2.4 µs of this time."""
    (case,) = cases_of(function_job(name), "slow_function").values()

    assert case.cost_ns == pytest.approx(304_600, abs=10)
    assert case.place.source_line == "train.py(3): step"


@pytest.mark.parametrize("name", [BACKWARD, WAIT])
def test_methods_of_pytorch_are_not_functions_of_the_user(name: str) -> None:
    """`backward` runs autograd and `wait` waits for other ranks, so neither is reported as a slow function."""
    assert not cases_of(function_job(name), "slow_function")


def test_a_function_that_runs_operators_is_the_model_not_a_slow_function() -> None:
    """The function spends 40 % of its time in operators, so it belongs to the model and is not reported as slow."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("model.py(9): forward", start_us=begin + 5, duration_us=990)
        for place in range(2):
            trace.operator("aten::mm", start_us=begin + 200 + 400 * place, duration_us=200)
            trace.kernel(
                "gemm", start_us=begin + 402 + 400 * place, duration_us=20, launch_us=begin + 390 + 400 * place
            )

    assert not cases_of(trace.build(), "slow_function")


def calling_job(*calls: tuple[str, str, int], slow_steps: int = 3) -> holotrace.Trace:
    """Return three steps of 1 ms that run `calls`: tuples of a user function, an inner function, and their time in µs.

    The user function calls the inner function; if both have the same name, there is only one call. After the first
    `slow_steps` steps, each call takes 1 µs.
    """
    trace = TraceBuilder()
    for number in range(3):
        start = 1000 * number + 5
        trace.step(number, start - 5, 1000)
        for function, inner, time_us in calls:
            length = time_us if number < slow_steps else 1
            trace.python(function, start_us=start, duration_us=length + 2)
            if inner != function:
                trace.python(inner, start_us=start + 1, duration_us=length)
            start += length + 3
        trace.kernel("gemm", start_us=start + 2, duration_us=1000 * number + 998 - start, launch_us=start + 1)
    return trace.build()


def test_the_calls_of_a_function_are_one_finding() -> None:
    """`log` writes for 110 µs and waits for the disk for 150 µs; one finding reports the total."""
    parts = [
        ("train.py(4): log", f"<built-in function {name}>", time_us)
        for name, time_us in (("write", 110), ("fsync", 150))
    ]
    found = holotrace.diagnosis(calling_job(*parts)).per_finding.filter(rule="slow_function")

    assert found["source_line"].to_list() == ["train.py(4): log"]
    assert found["stake_ns"].to_list() == [pytest.approx(260_000, rel=0.1)]


def test_a_function_counts_with_its_helpers() -> None:
    """`encode` and its helpers take 120 µs and are one finding; each function alone takes under 5 % of the step."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        trace.python("train.py(20): encode", start_us=begin + 10, duration_us=120)
        trace.python("text.py(4): split", start_us=begin + 25, duration_us=45)
        trace.python("train.py(21): <listcomp>", start_us=begin + 75, duration_us=50)
        trace.python("text.py(9): lookup", start_us=begin + 78, duration_us=44)
        trace.operator("aten::mm", start_us=begin + 140, duration_us=840)
    (row,) = holotrace.diagnosis(trace.build()).per_finding.filter(rule="slow_function").to_dicts()

    assert row["stake_ns"] == pytest.approx(120_000, rel=0.1)
    assert row["finding"].endswith("Python runs train.py(20): encode, mostly text.py(4): split")


def test_a_function_that_takes_long_in_one_step_only_may_be_held_up() -> None:
    """`encode` runs in three steps but is slow only in the first, so the confidence is low."""
    found = holotrace.diagnosis(calling_job(("train.py(4): encode",) * 2 + (700,), slow_steps=1)).per_finding
    (row,) = found.filter(rule="slow_function").to_dicts()

    assert row["finding"].endswith("train.py(4): encode, which is slow in only 1 of 3 steps")
    assert row["confidence"] == "low"


def test_the_training_loop_cannot_move_to_a_worker() -> None:
    """The function `step` calls an operator, so it is the training loop, and no advice to use a worker is given."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        trace.operator("aten::mm", start_us=begin + 500, duration_us=100)
        trace.kernel("gemm", start_us=begin + 602, duration_us=20, launch_us=begin + 590)
    found = holotrace.diagnosis(trace.build()).per_finding.filter(rule="slow_function")

    assert ["between the operators that it calls" in finding for finding in found["finding"]] == [True]
    assert not found["advice"].str.contains("worker").any()


def test_a_loop_that_calls_a_built_in_function_is_slow_although_each_piece_is_short() -> None:
    """`rate` calls `cos` 40 times in 0.4 ms; its cost excludes the 1.2 µs that the profiler needs for each call."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("schedule.py(5): rate", start_us=begin + 5, duration_us=400)
        for call in range(40):
            trace.python("<built-in function cos>", start_us=begin + 8 + 10 * call, duration_us=5)
        trace.kernel("gemm", start_us=begin + 410, duration_us=588, launch_us=begin + 407)
    case = cases_of(trace.build(), "slow_function")["schedule.py(5): rate"]

    assert case.cost_ns == pytest.approx(400_000 - 41 * 1_200, abs=10)
    assert case.place.source_line == "schedule.py(5): rate"


def preparing_job(*, calls: int) -> holotrace.Trace:
    """Return steps of 1 ms in which a library prepares inputs for 400 µs.

    In each step, the library calls Python functions `calls` times and runs one operator.
    """
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("infer.py(3): run", start_us=begin + 5, duration_us=990)
        trace.python("transformers/pipelines/base.py(9): preprocess", start_us=begin + 10, duration_us=400)
        for place in range(calls):
            length = 400 / calls
            trace.python("PIL/Image.py(5): resize", start_us=begin + 10 + length * place, duration_us=0.9 * length)
        trace.operator("aten::to", start_us=begin + 408, duration_us=1)
        trace.operator("aten::mm", start_us=begin + 412, duration_us=200)
        trace.kernel("gemm", start_us=begin + 620, duration_us=378, launch_us=begin + 605)
    return trace.build()


def test_a_library_that_prepares_inputs_is_a_slow_function() -> None:
    """`run` runs the operators; the library function that it calls runs almost none, so it is reported as slow."""
    found = holotrace.diagnosis(preparing_job(calls=20)).per_finding.filter(rule="slow_function")

    assert found["source_line"].to_list() == ["transformers/pipelines/base.py(9): preprocess"]
    assert found["finding"][0].endswith("preprocess, called in infer.py(3): run")
    assert found["stake_ns"][0] == pytest.approx(400_000 - 21 * 1_200, rel=0.01)


def test_a_library_that_is_slow_only_because_it_is_recorded_is_silent() -> None:
    """The library takes 400 µs, but 384 µs are the cost of recording 320 function calls, so it is not reported."""
    assert not cases_of(preparing_job(calls=320), "slow_function")


def held_up_job(name: str) -> holotrace.Trace:
    """Return steps of 1 ms in which a PyTorch function takes 300 µs but its operator only 10 µs."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        trace.python(name, start_us=begin + 10, duration_us=300)
        trace.operator("aten::linear", start_us=begin + 290, duration_us=10)
        trace.operator("aten::mm", start_us=begin + 311, duration_us=200)
        trace.kernel("gemm", start_us=begin + 320, duration_us=679, launch_us=begin + 312)
    return trace.build()


def test_something_else_holds_up_a_function_of_pytorch_outside_its_operators() -> None:
    """`linear` only calls its operator, so its other 290 µs are probably spent waiting for the GIL or a core."""
    sentences = said(held_up_job("<built-in function linear>"), "slow_function")

    assert "something blocks the thread in <built-in function linear>" in sentences.what
    assert "GIL" in sentences.advice


def test_converting_a_list_is_a_slow_function() -> None:
    """`torch.tensor` takes 300 µs, 290 of them outside its operator, where it converts a list."""
    trace = held_up_job("<built-in method tensor of type object at 0x7f25>")

    assert said(trace, "slow_function").what.startswith("the GPU waits while Python runs <built-in method tensor>")


def test_the_advice_for_a_slow_function_fits_what_it_does() -> None:
    """`keep_best` writes a file, so the advice is to write in the background; `parse` could run in a worker process."""
    write = calling_job(("train.py(4): keep_best", "<built-in method write_record>", 200))
    parse = calling_job(("train.py(4): parse", "<built-in function loads>", 200))

    assert "Write files less often, or in the background" in said(write, "slow_function").advice
    assert "worker process" in said(parse, "slow_function").advice


def test_sending_python_objects_is_named_by_the_function_that_training_calls() -> None:
    """`step` calls `all_gather_object`, which calls `load` and runs operators; the finding names all three."""
    gather = "torch/distributed/distributed_c10d.py(2900): all_gather_object"
    trace = TraceBuilder()
    for begin in (0, 1_000, 2_000):
        trace.step(begin // 1_000, begin, 1_000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        trace.operator("aten::linear", start_us=begin + 10, duration_us=400)
        trace.python(gather, start_us=begin + 420, duration_us=500)
        trace.operator("aten::copy_", start_us=begin + 425, duration_us=50)
        trace.python(
            "<built-in method load of _pickle.Unpickler object at 0x7f>", start_us=begin + 500, duration_us=400
        )
    sentences = said(trace.build(), "slow_function")

    assert f"<built-in method load> in {gather}, called in train.py(3): step" in sentences.what
    assert sentences.advice.startswith("Exchange tensors instead of Python objects")


def test_the_function_that_holds_a_lock_is_named() -> None:
    """The training thread waits 300 µs for a lock while `measure`, called by `run`, runs in another thread."""
    trace = TraceBuilder()
    trace.python("monitor.py(3): run", start_us=0, duration_us=3_000, thread=2)
    for begin in (0, 1_000, 2_000):
        trace.step(begin // 1_000, begin, 1_000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        lock = "<built-in method acquire of _thread.lock object at 0x7f>"
        trace.python(lock, start_us=begin + 10, duration_us=300)
        trace.python("monitor.py(9): measure", start_us=begin + 6, duration_us=303, thread=2)
        trace.kernel("gemm", start_us=begin + 320, duration_us=679, launch_us=begin + 312)
    sentences = said(trace.build(), "slow_function")

    assert sentences.what.endswith("in train.py(3): step; meanwhile, another thread runs monitor.py(9): measure")
    assert sentences.advice.startswith("Another thread holds the lock")
