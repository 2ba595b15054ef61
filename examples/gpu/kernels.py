"""Single operators in many precisions and shapes, with the FLOPs that PyTorch counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language
from recording import DEVICE, Scenario
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import record_function
from torch.utils.flop_counter import FlopCounterMode

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def random(*shape: int, dtype: torch.dtype = BF16, gradient: bool = False) -> Tensor:
    """Return a random tensor on the device."""
    return torch.randn(*shape, device=DEVICE, dtype=dtype, requires_grad=gradient)


def matrix_products() -> dict[str, Callable[[], Any]]:
    """Return {name: function that multiplies matrices}, for several element types and operators."""
    pairs = {dtype: (random(2048, 1024, dtype=dtype), random(1024, 4096, dtype=dtype)) for dtype in (BF16, FP16, FP32)}
    batched = random(16, 512, 64), random(16, 64, 512)
    odd = random(1001, 333), random(333, 777)
    bias = random(4096)
    eights = [random(2048, 1024).to(torch.float8_e4m3fn), random(4096, 1024).to(torch.float8_e4m3fn).t()]
    integers = torch.randint(-8, 8, (2048, 1024), dtype=torch.int8, device=DEVICE)
    integer_weight = torch.randint(-8, 8, (4096, 1024), dtype=torch.int8, device=DEVICE).t()
    one = torch.ones((), device=DEVICE)
    experts, routed = random(4, 1024, 2048), random(512, 1024)
    ends = torch.tensor([64, 192, 384, 512], dtype=torch.int32, device=DEVICE)

    def with_tf32() -> Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        product = pairs[FP32][0] @ pairs[FP32][1]
        torch.backends.cuda.matmul.allow_tf32 = False
        return product

    return {
        "mm bfloat16": lambda: pairs[BF16][0] @ pairs[BF16][1],
        "mm float16": lambda: pairs[FP16][0] @ pairs[FP16][1],
        "mm float32": lambda: pairs[FP32][0] @ pairs[FP32][1],
        "mm tf32": with_tf32,
        "mm float8": lambda: torch._scaled_mm(*eights, scale_a=one, scale_b=one, out_dtype=BF16),  # noqa: SLF001
        "mm int8": lambda: torch._int_mm(integers, integer_weight),  # noqa: SLF001
        "mm odd": lambda: odd[0] @ odd[1],
        "mm one row": lambda: pairs[BF16][0][:1] @ pairs[BF16][1],
        "addmm": lambda: torch.addmm(bias, *pairs[BF16]),
        "bmm": lambda: torch.bmm(*batched),
        "baddbmm": lambda: torch.baddbmm(random(16, 512, 512), *batched),
        "linear": lambda: functional.linear(pairs[BF16][0], pairs[BF16][1].t(), bias),
        "einsum": lambda: torch.einsum("bij,bjk->bik", *batched),
        "grouped_mm": lambda: torch._grouped_mm(routed, experts, offs=ends),  # noqa: SLF001
    }


def attentions() -> dict[str, Callable[[], Any]]:
    """Return {name: function that runs attention}, for each backend, forward and backward."""
    query, key, value = (random(4, 16, 1024, 64, gradient=True) for _ in range(3))
    grouped = [random(4, 16, 1024, 64), random(4, 4, 1024, 64), random(4, 4, 1024, 64)]

    def attend(backend: SDPBackend, *, causal: bool) -> Callable[[], None]:
        def run() -> None:
            with sdpa_kernel(backend):
                functional.scaled_dot_product_attention(query, key, value, is_causal=causal).sum().backward()

        return run

    return {
        **{
            f"attention {backend.name.lower()}": attend(backend, causal=False)
            for backend in (
                SDPBackend.FLASH_ATTENTION,
                SDPBackend.EFFICIENT_ATTENTION,
                SDPBackend.CUDNN_ATTENTION,
                SDPBackend.MATH,
            )
        },
        "attention flash causal": attend(SDPBackend.FLASH_ATTENTION, causal=True),
        "attention grouped": lambda: functional.scaled_dot_product_attention(*grouped, is_causal=True, enable_gqa=True),
    }


def others() -> dict[str, Callable[[], Any]]:
    """Return functions that run convolutions, normalisations, reductions, element-wise work, copies and embeddings."""
    images = random(32, 64, 56, 56, gradient=True)
    plain, grouped = nn.Conv2d(64, 128, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1, groups=64)
    strided, transposed = (
        nn.Conv2d(64, 128, 5, stride=2, dilation=1),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
    )
    volume = nn.Conv3d(8, 16, 3)
    for layer in (plain, grouped, strided, transposed, volume):
        layer.to(DEVICE, BF16)
    rows, weight = random(8192, 2048, gradient=True), random(2048)
    table, numbers = random(32000, 512), torch.randint(0, 32000, (8, 1024), device=DEVICE)
    bag = nn.EmbeddingBag(32000, 128, mode="sum").to(DEVICE)
    bag_numbers, bag_offsets = torch.randint(0, 32000, (4096,), device=DEVICE), torch.arange(0, 4096, 16, device=DEVICE)
    empty = random(0, 128)
    recurrent = nn.LSTM(256, 256).to(DEVICE)
    return {
        "conv": lambda: plain(images).sum().backward(),
        "conv depthwise": lambda: grouped(images).sum().backward(),
        "conv strided": lambda: strided(images).sum().backward(),
        "conv transposed": lambda: transposed(images).sum().backward(),
        "conv 3d": lambda: volume(random(4, 8, 16, 32, 32)),
        "layer_norm": lambda: functional.layer_norm(rows, (2048,), weight, weight).sum().backward(),
        "rms_norm": lambda: functional.rms_norm(rows, (2048,), weight).sum().backward(),
        "batch_norm": lambda: functional.batch_norm(images, None, None, training=True),
        "softmax": lambda: rows.softmax(-1),
        "cross_entropy": lambda: functional.cross_entropy(rows, numbers.flatten() % 2048),
        "gelu": partial(functional.gelu, rows),
        "add": lambda: rows + rows,
        "add broadcast": lambda: rows + weight,
        "sum": lambda: rows.sum(0),
        "cast": rows.float,
        "transpose copy": lambda: rows.t().contiguous(),
        "cat": lambda: torch.cat([rows, rows], 1),
        "embedding": lambda: functional.embedding(numbers, table),
        "embedding_bag": lambda: bag(bag_numbers, bag_offsets),
        "sort": lambda: rows.detach().sort(-1),
        "topk": lambda: rows.topk(8),
        "empty": lambda: empty @ random(128, 64),
        "lstm": lambda: recurrent(random(32, 16, 256, dtype=FP32)),
    }


def operators() -> Scenario:
    """Return a step that runs each operator twice, each time in a named range; `truth` has the FLOPs of one run."""
    torch.backends.cuda.matmul.allow_tf32 = False
    runs, refused = {}, {}
    for name, run in {**matrix_products(), **attentions(), **others()}.items():
        try:
            run()
        except Exception as error:  # noqa: BLE001, PERF203 -- not every build has every operator
            refused[name] = str(error).splitlines()[0][:200]
        else:
            runs[name] = run

    def step() -> None:
        for name, run in runs.items():
            for _ in range(2):
                with record_function(f"operator: {name}"):
                    run()

    return Scenario(
        step, steps=1, truth={"flops": {name: flops(run) for name, run in runs.items()}, "refused": refused}
    )


@triton.jit
def scaled_rows(rows, scales, result, width, block: triton.language.constexpr) -> None:  # noqa: ANN001 -- Triton compiles them
    """Multiply each row by its scale."""
    row = triton.language.program_id(0)
    columns = triton.language.arange(0, block)
    values = triton.language.load(rows + row * width + columns, mask=columns < width)
    scale = triton.language.load(scales + row)
    triton.language.store(result + row * width + columns, values * scale, mask=columns < width)


def triton_kernels() -> Scenario:
    """Return a step that runs a hand-written kernel twice: with enough blocks to fill the GPU, and with only eight."""
    rows, scales = random(16_384, 4096, dtype=FP32), random(16_384, dtype=FP32)
    result = torch.empty_like(rows)

    def step() -> None:
        for blocks in (16_384, 8):
            with record_function(f"blocks: {blocks}"):
                scaled_rows[(blocks,)](rows, scales, result, 4096, block=4096)

    return Scenario(step, {"with_stack": True})


def flops(run: Callable[[], Any]) -> int | str:
    """Return the FLOPs that PyTorch's FlopCounterMode counts, or the reason why it cannot count them."""
    try:
        with FlopCounterMode(display=False) as counter:
            run()
    except AssertionError as error:
        return str(error)
    return counter.get_total_flops()


def scenarios() -> dict[str, Callable[[], Scenario]]:
    """Return {name: function that builds the scenario}."""
    return {"operators": operators, "triton_kernels": triton_kernels}
