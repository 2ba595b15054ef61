"""Training jobs, and variants that differ from them in one change, often a mistake made on purpose."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, cycle

import torch
from models import Size, Transformer
from recording import DEVICE, Scenario
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

STACKS = {"with_stack": True, "with_modules": True}


@dataclass(frozen=True)
class Job:
    """Options of a job that trains a transformer; the defaults give the job `training`, which contains no mistake."""

    size: Size = field(default_factory=Size)
    low_precision: bool = True
    tf32: bool = True
    fused_optimizer: bool = True
    compiled: str | None = None
    pinned_copies: bool = True
    loading_s: float = 0.0
    micro_batches: int = 1
    reads_loss: bool = False
    empties_cache: bool = False
    collects_garbage: bool = False
    attention_backend: SDPBackend | None = None
    checkpoints_blocks: bool = False
    synchronizes_blocks: bool = False
    loader_workers: int | None = None


def training(job: Job, **options: object) -> Scenario:
    """Return a scenario that trains as `job` describes and is recorded with stacks and modules."""
    torch.manual_seed(0)
    model = Transformer(job.size).to(DEVICE)
    change_blocks(model, job)
    optimizer = torch.optim.AdamW(model.parameters(), fused=job.fused_optimizer, foreach=False)
    run = torch.compile(model, mode=job.compiled) if job.compiled else model
    batches = load_batches(job) if job.loader_workers is None else load_with_workers(job)
    ballast = [[number] for number in range(1_000_000)] if job.collects_garbage else []

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = job.tf32
        for _ in range(job.micro_batches):
            tokens = next(batches)
            with record_function("forward"):
                loss = forward(run, tokens, job)
            with record_function("backward"):
                loss.backward()
            if job.reads_loss:
                log_loss(loss)
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        if job.empties_cache:
            torch.cuda.empty_cache()
        if ballast:
            gc.collect()

    return Scenario(step, {**STACKS, **options})


def change_blocks(model: Transformer, job: Job) -> None:
    """If the job requires it, make the backward pass recompute the blocks, or make the host wait after each block."""
    for block in model.blocks:
        if job.checkpoints_blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
        if job.synchronizes_blocks:
            block.register_forward_hook(wait_for_device)


def load_batches(job: Job) -> Iterator[Tensor]:
    """Yield batches of random tokens on the device."""
    size = job.size
    while True:
        batch = load_batch(job, (size.batch, size.tokens + 1), size.vocabulary)
        if job.pinned_copies and DEVICE == "cuda":
            batch = batch.pin_memory()
        yield batch.to(DEVICE, non_blocking=job.pinned_copies)


class SlowSamples(Dataset[Tensor]):
    """Random sequences; each takes 5 ms to prepare."""

    def __init__(self, size: Size) -> None:
        self.size = size

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, number: int) -> Tensor:
        time.sleep(0.005)
        return torch.randint(0, self.size.vocabulary, (self.size.tokens + 1,))


def load_with_workers(job: Job) -> Iterator[Tensor]:
    """Yield the batches of a DataLoader, copied to the device."""
    loader = DataLoader(SlowSamples(job.size), job.size.batch, num_workers=job.loader_workers or 0, pin_memory=True)
    for batch in loader:
        yield batch.to(DEVICE, non_blocking=True)


def wait_for_device(*_: object) -> None:
    """Wait for all work on the device, as leftover timing code would."""
    torch.cuda.synchronize()


def load_batch(job: Job, shape: tuple[int, int], vocabulary: int) -> Tensor:
    """Wait for `loading_s` seconds, then make one batch."""
    if job.loading_s:
        time.sleep(job.loading_s)
    return torch.randint(0, vocabulary, shape)


def forward(model: Callable[[Tensor], Tensor], tokens: Tensor, job: Job) -> Tensor:
    """Return the loss of one batch."""
    backend = sdpa_kernel(job.attention_backend) if job.attention_backend else nullcontext()
    with backend, torch.autocast(DEVICE, torch.bfloat16, enabled=job.low_precision):
        logits = model(tokens[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def log_loss(loss: Tensor) -> float:
    """Read the loss on the host, which waits for the device."""
    return loss.item()


SMALL = Size(width=256, heads=4, vocabulary=1024, batch=4, tokens=128)
"""A model so small that the host determines the step time."""


def elementwise_chain(length: int) -> Scenario:
    """Return a step of 2 * `length` small element-wise kernels that could be one kernel."""
    data = torch.randn(1 << 20, device=DEVICE)

    def step() -> Tensor:
        value = data
        for number in range(length):
            value = value * 1.01 + number
        return value.sum()

    return Scenario(step, STACKS)


def fragmented_memory() -> Scenario:
    """Return a step whose tensors never fit into the free blocks, so the allocator frees its cache and tries again."""
    total = torch.cuda.get_device_properties(0).total_memory
    reserved = [torch.empty(int(total * 0.9), dtype=torch.uint8, device=DEVICE)]
    sizes = cycle((900, 1300, 1700, 2100, 1100, 1900))

    def step() -> None:
        for _ in range(4):
            block = torch.empty(next(sizes) << 20, dtype=torch.uint8, device=DEVICE)
            block.fill_(len(reserved))
            del block

    return Scenario(step, {"with_stack": True, "profile_memory": True})


def prefetching(*, overlaps: bool) -> Scenario:
    """Return a step that copies and multiplies eight batches; `overlaps` makes the copies run on a second stream."""
    batches = [torch.randn(2048, 4096).pin_memory() for _ in range(8)]
    weight = torch.randn(4096, 4096, device=DEVICE)
    compute = torch.cuda.current_stream()
    copies = torch.cuda.Stream() if overlaps else compute

    def step() -> None:
        for batch in batches:
            with torch.cuda.stream(copies):
                here = batch.to(DEVICE, non_blocking=True)
            compute.wait_stream(copies)
            here.record_stream(compute)
            here @ weight

    return Scenario(step, {**STACKS, "experimental_config": with_sync_events()})


def experts() -> Scenario:
    """Return a training step of eight experts in grouped matrix products; one expert gets half of the tokens."""
    counts = [2048, 256, 256, 128, 512, 256, 128, 512]
    ends = torch.tensor(counts, device=DEVICE).cumsum(0).to(torch.int32)
    tokens = torch.randn(sum(counts), 1024, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    inner = torch.randn(8, 1024, 2048, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    outer = torch.randn(8, 2048, 1024, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)

    def step() -> None:
        hidden = functional.gelu(torch._grouped_mm(tokens, inner, offs=ends))  # noqa: SLF001
        torch._grouped_mm(hidden, outer, offs=ends).float().square().mean().backward()  # noqa: SLF001

    return Scenario(step, STACKS, {"tokens_of_experts": counts})


def jagged_attention() -> Scenario:
    """Return a step that runs attention over a nested tensor of sequences of different lengths."""
    lengths = [100, 900, 300, 700]
    parts = [torch.randn(length, 16, 64, device=DEVICE, dtype=torch.bfloat16) for length in lengths]
    queries = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    return Scenario(
        lambda: functional.scaled_dot_product_attention(queries, queries, queries), STACKS, {"lengths": lengths}
    )


def uneven_steps() -> Scenario:
    """Return training steps; every sixth step collects garbage, and every tenth gets longer sequences."""
    numbers = count()
    short, long = (training(Job(replace(SMALL, tokens=tokens))).step for tokens in (128, 512))
    ballast = [[number] for number in range(300_000)]

    def step() -> None:
        number = next(numbers)
        (long if number % 10 == 3 else short)()  # noqa: PLR2004
        if number % 6 == 5 and ballast:  # noqa: PLR2004
            gc.collect()

    return Scenario(step, {"record_shapes": False}, steps=24, warm_up_steps=0)


def masked_rows(*, by_index: bool) -> Scenario:
    """Return a step that selects half of the rows, by indices or by a mask; a mask makes the host wait for the device."""
    rows, indices = torch.randn(1 << 16, 256, device=DEVICE), torch.arange(0, 1 << 16, 2, device=DEVICE)
    weight = torch.randn(256, 256, device=DEVICE)

    def step() -> None:
        for _ in range(8):
            kept = rows.index_select(0, indices) if by_index else rows[rows[:, 0] > 0]
            kept @ weight

    return Scenario(step, STACKS)


def large_copies(*, pinned: bool) -> Scenario:
    """Return a step that copies a matrix of 64 MB to the device and multiplies it by another matrix."""
    batch = torch.randn(4096, 4096)
    batch = batch.pin_memory() if pinned and DEVICE == "cuda" else batch
    weight = torch.randn(4096, 4096, device=DEVICE)

    def step() -> None:
        batch.to(DEVICE, non_blocking=pinned) @ weight

    return Scenario(step, STACKS)


class Images(nn.Module):
    """A small convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 128, 256, 256)
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
            for width, after in zip(widths, (*widths[1:], 256), strict=True)
        )
        self.head = nn.Linear(256, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits of shape (batch, 1000)."""
        hidden = self.stem(images)
        for layer in self.layers:
            hidden = functional.max_pool2d(layer(hidden), 2)
        return self.head(hidden.mean((2, 3)))


def convolutions(*, channels_last: bool) -> Scenario:
    """Return the training step of a convolutional network in half precision."""
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    model = Images().to(DEVICE, memory_format=memory_format)
    images = torch.randn(64, 3, 224, 224, device=DEVICE).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(images).float().logsumexp(1).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return Scenario(step, STACKS)


VERY_LARGE = 1e30
"""A threshold that the sum of a layer's output never reaches, so code that needs a larger sum never runs."""


def breaking_graph(*, breaks: bool) -> Scenario:
    """Return a compiled model's step; `breaks` makes the host read a value in every layer, which breaks the graph."""
    layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(4)).to(DEVICE)

    @torch.compile
    def model(hidden: Tensor) -> Tensor:
        for layer in layers:
            hidden = functional.gelu(layer(hidden))
            if breaks and hidden.sum().item() > VERY_LARGE:
                hidden = hidden * 0
        return hidden.sum()

    batch = torch.randn(256, 512, device=DEVICE)
    return Scenario(lambda: model(batch).backward(), STACKS)


def recompiling() -> Scenario:
    """Return a compiled step whose input has a new shape each time."""
    layer = nn.Linear(512, 512).to(DEVICE)
    sizes = iter(range(64, 10_000, 3))

    @torch.compile(dynamic=False)
    def model(hidden: Tensor) -> Tensor:
        return functional.gelu(layer(hidden)).sum()

    torch._dynamo.config.recompile_limit = 1000  # noqa: SLF001
    return Scenario(lambda: model(torch.randn(next(sizes), 512, device=DEVICE)))


def with_sync_events() -> object:
    """Return the profiler option that records which stream waits for which event."""
    options = torch._C._profiler._ExperimentalConfig  # noqa: SLF001 -- PyTorch has no public name for it
    return options(enable_cuda_sync_events=True)


def scenarios() -> dict[str, Callable[[], Scenario]]:
    """Return {name: function that builds the scenario}; for example, `training-tf32` is `training` with one change."""
    job, small = Job(), Job(SMALL)
    jobs: dict[str, Job] = {
        "training": job,
        "training-not_fused": replace(job, fused_optimizer=False),
        "training-full_precision": replace(job, low_precision=False, tf32=False),
        "training-tf32": replace(job, low_precision=False),
        "training-odd_shapes": replace(job, size=replace(job.size, vocabulary=8191, width=1008, heads=14)),
        "training-math_attention": replace(job, attention_backend=SDPBackend.MATH),
        "training-empties_cache": replace(job, empties_cache=True),
        "training-compiled": replace(job, compiled="default"),
        "training-compiled_graphs": replace(job, compiled="reduce-overhead"),
        "training-checkpointed": replace(job, checkpoints_blocks=True),
        "training-synchronized": replace(job, synchronizes_blocks=True),
        "small": small,
        "small-loader": replace(small, loader_workers=0),
        "small-loader_workers": replace(small, loader_workers=4),
        "small-reads_loss": replace(small, reads_loss=True, micro_batches=4),
        "small-micro_batches": replace(small, micro_batches=4),
        "small-slow_loading": replace(small, loading_s=0.02),
        "small-collects_garbage": replace(small, collects_garbage=True),
        "small-not_fused": replace(small, fused_optimizer=False),
        "small-compiled_graphs": replace(small, compiled="reduce-overhead"),
    }
    return {
        **{name: lambda job=job: training(job) for name, job in jobs.items()},
        "training-memory": lambda: training(Job(), profile_memory=True, with_stack=False),
        "training-flops": lambda: training(Job(), with_flops=True, with_stack=False),
        "training-sync_events": lambda: training(Job(), with_stack=False, experimental_config=with_sync_events()),
        "elementwise-unfused": lambda: elementwise_chain(100),
        "memory-fragmented": fragmented_memory,
        "prefetching": lambda: prefetching(overlaps=True),
        "prefetching-in_turn": lambda: prefetching(overlaps=False),
        "experts": experts,
        "jagged_attention": jagged_attention,
        "uneven_steps": uneven_steps,
        "rows": lambda: masked_rows(by_index=True),
        "rows-masked": lambda: masked_rows(by_index=False),
        "copies": lambda: large_copies(pinned=True),
        "copies-pageable": lambda: large_copies(pinned=False),
        "images": lambda: convolutions(channels_last=True),
        "images-channels_first": lambda: convolutions(channels_last=False),
        "compiled": lambda: breaking_graph(breaks=False),
        "compiled-graph_breaks": lambda: breaking_graph(breaks=True),
        "compiled-recompiles": recompiling,
    }
