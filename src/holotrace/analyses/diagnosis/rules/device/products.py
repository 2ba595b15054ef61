"""Rules about matrix products: alignment, precision, tensor cores, and low rates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from holotrace.analyses.diagnosis.evidence.host_pace import FALLS_BEHIND, host_pace
from holotrace.analyses.diagnosis.evidence.kernel_evidence import (
    ATTAINABLE_PRODUCTS,
    BEST_PRODUCTS,
    CallInputs,
    attainable_products,
    floor_at,
    inputs_of,
)
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.device.device_cases import (
    DURATION,
    FLOOR,
    LAYOUT_KERNELS,
    LEAST_SHARE,
    attained,
    case_of,
    share_of,
)
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.collectives.element_types import element_bytes
from holotrace.enrich.device.devices import is_rocm
from holotrace.enrich.device.peaks import Device
from holotrace.enrich.device.precisions import low_precisions
from holotrace.enrich.kernels.tensor_cores import is_tensor_core_eligible
from holotrace.units import percent_text

_IS_MATRIX = pl.col("cores") == "matrix"
_IS_ATTENTION = pl.col("operator").str.contains("attention|sdpa").fill_null(value=False)
_OF_ALIGNMENT = re.compile(r"aten::(_?grouped_mm|_?scaled_mm|addmm|baddbmm|bmm|linear|matmul|mm)(_|\.|$)")
_ALIGNMENT_BYTES = 16
_SLOW = 0.4
_IMAGE_DIMENSIONS, _LEAST_CHANNELS = 4, 16
_SHORTEST_CALL_NS = 20_000
_MATRIX_DIMENSIONS = 2
_SIXTEEN_BITS = ("bfloat16", "float16")
_MOSTLY = 0.9
_LEAST_SPEEDUP = 3
"""Mixed precision makes training up to three times as fast; https://developer.nvidia.com/automatic-mixed-precision"""
_FLOAT8_FLOPS_PER_BYTE = 500
"""Below about this intensity, FP8 products are memory-bound on Hopper (1979 TFLOP/s / 3.35 TB/s = 590)."""


def unaligned_products(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for slow products of matrices whose rows do not begin at multiples of 16 bytes."""
    slow = evidence.costed.filter(
        _IS_MATRIX
        & ~_IS_ATTENTION
        & pl.col("precision").is_in(["bfloat16", "float16", "tf32", "float8", "int8"])
        & (FLOOR < _SLOW * DURATION)
    )
    slow = slow.filter(pl.col("operator").str.contains(_OF_ALIGNMENT.pattern))
    known = inputs_of(evidence.rank_trace, slow["key"])
    sizes = {key: size for key, inputs in known.items() if (size := _unaligned_row(inputs)) is not None}
    rows = slow.filter(pl.col("key").is_in(list(sizes))).with_columns(*_attained(evidence))
    if len(rows):
        key = rows["key"][int(rows["saved_ns"].arg_max() or 0)]
        yield case_of(evidence, rows, words={**sizes[key], "shapes": shapes_text(known[key])})


def _unaligned_row(inputs: CallInputs) -> dict[str, int] | None:
    """Return the length of a matrix's unaligned rows; None if all rows are aligned.

    The rows become aligned if their length is padded to a multiple of the number in `multiple`.
    """
    matrices = [index for index, dims in enumerate(inputs.dims) if _is_matrix(dims)][-2:]
    for index in matrices:
        size = element_bytes(str(inputs.types[index])) if index < len(inputs.types) else None
        length = _row_length(inputs, index)
        if size and length and length * size % _ALIGNMENT_BYTES:
            return {"length": length, "multiple": _ALIGNMENT_BYTES // size}
    result = inputs.dims[matrices[-1]][-1] if len(matrices) == _MATRIX_DIMENSIONS else None  # type: ignore[index]
    size = element_bytes(str(inputs.types[matrices[-1]])) if matrices and matrices[-1] < len(inputs.types) else None
    if size and isinstance(result, int) and result * size % _ALIGNMENT_BYTES:
        return {"length": result, "multiple": _ALIGNMENT_BYTES // size}
    return None


def _is_matrix(dims: object) -> bool:
    return isinstance(dims, list) and len(dims) >= _MATRIX_DIMENSIONS and all(isinstance(size, int) for size in dims)


def _row_length(inputs: CallInputs, index: int) -> int | None:
    """Return the distance in elements between two rows (or between two columns, if columns are contiguous)."""
    dims, strides = inputs.dims[index], inputs.strides[index] if index < len(inputs.strides) else None
    if not _is_matrix(strides):
        return dims[-1]  # type: ignore[index,no-any-return]
    outer, inner = strides[-2:]  # type: ignore[index]
    return outer if inner == 1 else inner if outer == 1 else None


def shapes_text(inputs: CallInputs) -> str:
    """Return the shapes of the two matrices of a product, such as `4096 x 1008 by 1008 x 8191`."""
    matrices = [dims for dims in inputs.dims if _is_matrix(dims)][-2:]
    return " by ".join(" x ".join(map(str, dims)) for dims in matrices)  # type: ignore[call-overload]


def tf32_off(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for float32 products that run on ordinary cores although the device's tensor cores support TF32."""
    device = evidence.peaks
    if device is not None and not is_rocm(evidence.rank_trace) and device.flops_per_s("tf32", matrix=True):
        yield from _faster_as(evidence, device, "tf32", ("float32",))


def mixed_precision_off(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for products in float32 or TF32 on a device that supports bfloat16 or float16."""
    device = evidence.peaks
    wanted = next((name for name in _SIXTEEN_BITS if device and device.flops_per_s(name, matrix=True)), None)
    if device is not None and wanted is not None:
        yield from _faster_as(evidence, device, wanted, ("float32", "tf32"))


def float8_possible(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for large 16-bit products if the device supports FP8, unless the host falls behind the device."""
    device, pace = evidence.peaks, host_pace(evidence)
    if device is None or not device.flops_per_s("float8", matrix=True) or (pace and pace.ratio >= FALLS_BEHIND):
        return
    intensity = pl.col("flops") / pl.col("bytes_moved")
    is_large = (
        _IS_MATRIX & ~_IS_ATTENTION & pl.col("precision").is_in(_SIXTEEN_BITS) & (intensity > _FLOAT8_FLOPS_PER_BYTE)
    )
    # The speedup is at most the ratio of the lower bounds, because a product in FP8 does not come closer to its
    # peak rate than the same product in 16 bits.
    in_float8 = floor_at("float8", device)
    rows = evidence.costed.filter(is_large).with_columns(
        saved_ns=(FLOOR - in_float8).clip(0), most_ns=(DURATION * (1 - in_float8 / FLOOR)).clip(0)
    )
    if len(rows):
        yield case_of(evidence, rows)


def _faster_as(evidence: RankEvidence, device: Device, precision: str, instead_of: Sequence[str]) -> Iterator[Case]:
    chosen = _IS_MATRIX & pl.col("precision").is_in(instead_of) & pl.col("flops").is_not_null()
    rows = evidence.costed.filter(chosen).with_columns(
        saved_ns=_saved_as(device, precision, ATTAINABLE_PRODUCTS), most_ns=_saved_as(device, precision, BEST_PRODUCTS)
    )
    if len(rows):
        share = float(rows["duration_ns"].sum()) / evidence.time_ns
        yield case_of(
            evidence, rows, words={"precision": precision, "share": share, "now": rows["precision"].mode()[0]}
        )


def _saved_as(device: Device, precision: str, share: float) -> pl.Expr:
    """Return the time saved if products run in `precision` and reach this share of the device's peak rate."""
    return (DURATION - floor_at(precision, device) / share).clip(0).fill_null(0)


def _attained(evidence: RankEvidence) -> tuple[pl.Expr, pl.Expr]:
    """Return two columns: the time saved if products reach the device's typical rate, or the best possible rate."""
    return attained(attainable_products(evidence.peaks), BEST_PRODUCTS)


def tensor_cores_unused(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for products of unknown shapes if no kernel uses tensor cores, although every device has them.

    The rule judges by the names of operators and kernels. A kernel whose name does not show which cores it uses is not
    included, because it may use tensor cores. Attention is left out, because its float32 kernels use tensor cores by
    default.
    """
    types = _common_precisions(evidence)
    named = evidence.costed.drop_nulls("operator").filter(~_IS_ATTENTION)
    eligible = pl.Series(is_tensor_core_eligible(named["operator"]))
    products = named.filter(eligible)
    is_bounded = evidence.peaks is not None and products["flops"].count() > 0
    if not types or is_bounded or named["uses_tensor_cores"].any() or not _mostly_ordinary(products):
        return
    saved = DURATION * (1 - 1 / _speedup(evidence.peaks, types[0]))
    rows = products.filter(~pl.col("uses_tensor_cores")).with_columns(saved_ns=saved)
    # The case is an estimate: without shapes, it is unknown how much faster tensor cores would run these products, and
    # how much time smaller types would save in other kernels.
    yield replace(case_of(evidence, rows, words={"types": types}), is_estimate=True)


def _speedup(device: Device | None, precision: str) -> float:
    """Return the peak rate of tensor cores in `precision`, divided by the peak rate of ordinary cores in float32.

    If this ratio is smaller than 3 or a rate is unknown, return 3.
    """
    rates = device and (device.flops_per_s(precision, matrix=True), device.flops_per_s("float32", matrix=False))
    return max(_LEAST_SPEEDUP, rates[0] / rates[1]) if rates and rates[0] and rates[1] else _LEAST_SPEEDUP


def _mostly_ordinary(products: pl.DataFrame) -> bool:
    """Return whether most of the products' time is in kernels whose names show that they use ordinary cores."""
    ordinary = products.filter(~pl.col("uses_tensor_cores"))
    return len(ordinary) > 0 and float(ordinary["duration_ns"].sum()) >= _MOSTLY * float(products["duration_ns"].sum())


def _common_precisions(evidence: RankEvidence) -> tuple[str, ...]:
    """Return the low-precision types that all devices of the rank support."""
    known = [
        low_precisions(device["device_name"], device["compute_capability"], is_rocm=is_rocm(evidence.rank_trace))
        for device in evidence.devices
    ]
    return tuple(name for name in known[0] if all(name in types for types in known)) if known else ()


def ordinary_cores(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for 16-bit products that run on ordinary cores."""
    uses = pl.col("uses_tensor_cores").fill_null(value=True)
    products = evidence.costed.filter(_IS_MATRIX & pl.col("precision").is_in(_SIXTEEN_BITS))
    rows = products.filter(~uses.any().over("row")).with_columns(*_attained(evidence))
    rows = rows.filter(pl.col("saved_ns") > 0)
    if len(rows):
        yield case_of(evidence, rows)


def slow_products(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for long products that reach less than 40 % of the device's peak rates."""
    products = evidence.costed.filter(_IS_MATRIX & ~_IS_ATTENTION & FLOOR.is_not_null())
    floor_of_call = FLOOR.sum().over("row")
    kernels = products.with_columns(floor_of_call.alias("call_floor_ns")).filter(
        ~pl.col("kernel").str.contains(LAYOUT_KERNELS)
    )
    per_call = DURATION.sum().over("row")
    slow = kernels.filter((pl.col("call_floor_ns") < _SLOW * per_call) & (per_call > _SHORTEST_CALL_NS))
    known = inputs_of(evidence.rank_trace, slow["key"])
    rows = slow.filter(~pl.col("key").is_in([key for key, inputs in known.items() if _has_few_channels(inputs)]))
    if len(rows):
        share = pl.col("call_floor_ns") / per_call
        rows = rows.with_columns(
            saved_ns=DURATION * (1 - share / attainable_products(evidence.peaks)).clip(0),
            most_ns=DURATION * (1 - share / BEST_PRODUCTS).clip(0),
            attained=share,
        )
        attained_share = share_of(rows["attained"] * rows["duration_ns"], rows["duration_ns"])
        key = rows["key"][int(rows["saved_ns"].arg_max() or 0)]
        words = {"attained": attained_share, "shapes": shapes_text(known[key]), "is_rocm": is_rocm(evidence.rank_trace)}
        yield case_of(evidence, rows, words=words)


def _has_few_channels(inputs: CallInputs) -> bool:
    """Return whether this is a convolution with too few channels for tensor cores, as in most models' first layer."""
    images = [dims for dims in inputs.dims if isinstance(dims, list) and len(dims) >= _IMAGE_DIMENSIONS]
    return any(isinstance(dims[1], int) and dims[1] < _LEAST_CHANNELS for dims in images)


def _say_unaligned(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    length, multiple = words["length"], words["multiple"]
    return Said(
        f"matrix products run far below the speed of the tensor cores, because rows of {length:,} elements are not aligned "
        f"({words['operator']}, {words['shapes']})",
        f"Pad this dimension to a multiple of {multiple}, ideally of 64: {-(-length // 64) * 64:,} instead of {length:,}. It is "
        "often the vocabulary size, the width of a head or the number of classes.",
    )


def _say_tf32(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"float32 matrix products run without tensor cores ({cases[0].words['operator']} and others)",
        'Call torch.set_float32_matmul_precision("high") to multiply in TF32; training in bfloat16 '
        "(torch.autocast) is faster still.",
    )


def _say_unused(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    also = ', or torch.set_float32_matmul_precision("high") to stay in float32' if "tf32" in words["types"] else ""
    scaled = "" if words["types"][0] == "bfloat16" else ", with torch.amp.GradScaler"
    return Said(
        f"no kernel uses tensor cores, although {words['operator']} and other matrix products could use them",
        f"Run the forward pass under torch.autocast(device_type, torch.{words['types'][0]}){scaled}{also}. With "
        "record_shapes=True, the next recording shows what this saves.",
    )


def _say_mixed(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    advice = (
        "Run the forward pass under torch.autocast(device_type, torch.bfloat16)."
        if words["precision"] == "bfloat16"
        else "Run the forward pass under torch.autocast(device_type, torch.float16), and scale the loss with "
        "torch.amp.GradScaler; this device does not support bfloat16."
    )
    names = {"tf32": "TF32"}
    return Said(
        f"matrix products compute in {names.get(words['now'], words['now'])}, although the device is faster in "
        f"{words['precision']} ({percent_text(words['share'])} of the step)",
        advice,
    )


def _say_float8(cases: Sequence[RankCase]) -> Said:
    return Said(
        "large matrix products compute in 16 bits, although the device supports FP8 "
        f"({cases[0].words['operator']} and others)",
        "If the model tolerates it, convert its large linear layers to FP8 (torchao.float8.convert_to_float8_training, or "
        "Transformer Engine), and compare the loss.",
    )


def _say_ordinary(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"16-bit matrix products run without tensor cores ({words['operator']}, kernel {words['kernel']})",
        "Make the dimensions multiples of 8 and the inputs contiguous, so the library can choose kernels for tensor cores.",
    )


def _say_slow(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    shapes = f", {words['shapes']}" if words["shapes"] else ""
    tuning = (
        "Let TunableOp (PYTORCH_TUNABLEOP_ENABLED=1) choose the kernels"
        if words["is_rocm"]
        else 'Let torch.compile(mode="max-autotune") or torch.backends.cudnn.benchmark = True choose the kernels'
    )
    return Said(
        f"matrix products and convolutions reach only {percent_text(words['attained'])} of the device's peak rates "
        f"({words['operator']}{shapes})",
        f"{tuning}, and combine small products into larger ones.",
    )


def needs_costs(evidence: RankEvidence) -> str | None:
    """Say why no lower bounds can be computed, and how to add what is missing: device work, shapes or peak rates."""
    if (missing := needs_device(evidence)) is not None:
        return missing
    if evidence.costed["flops"].null_count() == evidence.costed.height:
        return "the shapes of the operators' inputs were not recorded; record with record_shapes=True"
    if evidence.peaks is None:
        return "the peak rates of the device are unknown; write them to a file, and set HOLOTRACE_DEVICES to its path"
    return None


_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_MATMUL = "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html"

RULES = (
    Rule(
        "unaligned_products",
        "tensor-core products of matrices whose rows are not multiples of 16 bytes, if they reach less than 40 % of the device's peak rates",
        threshold=LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="Products of aligned matrices reach at least 55 % of the peak rates. "
        "Losses below 3 % of a step are smaller than the variation between steps.",
        source=_MATMUL,
        check=unaligned_products,
        say=_say_unaligned,
        precedence=0,
        needs=needs_costs,
    ),
    Rule(
        "tf32_off",
        "float32 products on ordinary cores, although the tensor cores of the device support TF32",
        threshold=LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="TF32 is up to eight times as fast. Gains below 3 % of a step are smaller than the variation between "
        "steps.",
        source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
        check=tf32_off,
        say=_say_tf32,
        precedence=0,
        needs=needs_costs,
    ),
    Rule(
        "mixed_precision_off",
        "products in float32 or TF32, on a device with bfloat16 or float16",
        threshold=0.1,
        unit=OF_THE_STEP,
        reason="It takes effort to test whether the model trains well in another precision, so the gain must be clear.",
        source="https://docs.pytorch.org/docs/stable/amp.html",
        check=mixed_precision_off,
        say=_say_mixed,
        needs=needs_costs,
        confidence="medium",
    ),
    Rule(
        "tensor_cores_unused",
        "products of unknown shapes, in a job whose kernels use no tensor cores although its devices have them",
        threshold=0.1,
        unit=OF_THE_STEP,
        reason="Without shapes, the gain is only an estimate, so the rule reports only large gains.",
        source=_MATMUL,
        check=tensor_cores_unused,
        say=_say_unused,
        confidence="low",
    ),
    Rule(
        "float8_possible",
        "large 16-bit products that dominate the step, on a device with FP8",
        threshold=0.2,
        unit=OF_THE_STEP,
        reason="FP8 needs care with numerics. Switching to FP8 is worth the effort only if it saves a fifth of the step.",
        source="https://pytorch.org/blog/training-using-float8-fsdp2/",
        check=float8_possible,
        say=_say_float8,
        precedence=2,
        needs=needs_costs,
        confidence="low",
    ),
    Rule(
        "ordinary_cores",
        "16-bit products whose kernels do not use tensor cores",
        threshold=LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="Memory-bound products are ignored, because tensor cores could not speed them up.",
        source=_MATMUL,
        check=ordinary_cores,
        say=_say_ordinary,
        needs=needs_costs,
    ),
    Rule(
        "slow_products",
        "products and convolutions of more than 20 µs that reach less than 40 % of the device's peak rates",
        threshold=0.1,
        unit=OF_THE_STEP,
        reason="Products of well-chosen shapes reach 55 to 78 % of the peak rates. Choosing other kernels takes "
        "effort and is worth it only if it saves at least a tenth of the step.",
        source=_TUNING,
        check=slow_products,
        say=_say_slow,
        needs=needs_costs,
        confidence="medium",
    ),
)
"""The rules about matrix products."""
