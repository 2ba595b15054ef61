"""Jobs of two ranks that share one GPU and communicate through NCCL, with and without a slow rank."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
import torch.distributed as dist
from models import Size, Transformer
from recording import DEVICE, Scenario, record
from torch import Tensor, multiprocessing, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
SIZE = Size(width=512, heads=8, blocks=3, vocabulary=4096, batch=4, tokens=256)
SLOW_RANK, DELAY_S = 1, 0.03


def data_parallel(rank: int, *, slow: bool) -> Callable[[], None]:
    """Return the training step of DistributedDataParallel."""
    model = DistributedDataParallel(Transformer(SIZE).to(DEVICE), bucket_cap_mb=8)
    return training_step(model, model.parameters(), slow=slow and rank == SLOW_RANK)


def sharded(rank: int, *, slow: bool) -> Callable[[], None]:
    """Return the training step of FSDP2, which gathers the parameters block by block."""
    model = Transformer(SIZE).to(DEVICE)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return training_step(model, model.parameters(), slow=slow and rank == SLOW_RANK)


def training_step(model: nn.Module, parameters: Iterable[nn.Parameter], *, slow: bool) -> Callable[[], None]:
    """Return a step that trains on random tokens; a slow rank spends 30 ms preparing each batch."""
    optimizer = torch.optim.AdamW(parameters, fused=DEVICE == "cuda")

    def step() -> None:
        tokens = prepare_batch(slow=slow)
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = model(tokens[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def prepare_batch(*, slow: bool) -> Tensor:
    """Return random tokens."""
    if slow:
        time.sleep(DELAY_S)
    return torch.randint(0, SIZE.vocabulary, (SIZE.batch, SIZE.tokens + 1)).to(DEVICE)


def tensor_parallel(rank: int, *, slow: bool) -> Callable[[], None]:
    """Return a step of perceptrons split over the ranks: first layers by columns, second layers by rows."""
    mesh = init_device_mesh(DEVICE, (RANKS,), mesh_dim_names=("tp",))
    layers = nn.Sequential(
        *(nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(3))
    ).to(DEVICE)
    for layer in layers:
        parallelize_module(layer, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    batch = torch.randn(1024, 1024, device=DEVICE)

    def step() -> None:
        if slow and rank == SLOW_RANK:
            time.sleep(DELAY_S)
        layers(batch).square().mean().backward()

    return step


def experts(rank: int, *, slow: bool) -> Callable[[], None]:
    """Return a step that exchanges uneven numbers of tokens between two experts."""
    width, sends = 512, [[1500, 548], [1800, 248]]
    expert = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).to(DEVICE)
    tokens = torch.randn(sum(sends[rank]), width, device=DEVICE)
    received = [sends[source][rank] for source in range(RANKS)]

    def step() -> None:
        if slow and rank == SLOW_RANK:
            time.sleep(DELAY_S)
        for _ in range(4):
            arrived = torch.empty(sum(received), width, device=DEVICE)
            dist.all_to_all_single(arrived, tokens, received, sends[rank])
            with torch.no_grad():
                answers = expert(arrived)
            back = torch.empty_like(tokens)
            dist.all_to_all_single(back, answers, sends[rank], received)

    return step


def pipeline(rank: int, *, slow: bool) -> Callable[[], None]:
    """Return a step that sends four microbatches forward through two stages, and their gradients backward."""
    stage = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).to(DEVICE)

    def step() -> None:
        if slow and rank == SLOW_RANK:
            time.sleep(DELAY_S)
        for _ in range(4):
            if rank == 0:
                sent = stage(torch.randn(512, 1024, device=DEVICE))
                dist.send(sent.detach(), 1)
                gradient = torch.empty_like(sent)
                dist.recv(gradient, 1)
                sent.backward(gradient)
            else:
                received = torch.empty(512, 1024, device=DEVICE, requires_grad=True)
                dist.recv(received.data, 0)
                stage(received).sum().backward()
                dist.send(received.grad, 0)

    return step


JOBS: dict[str, Callable[..., Callable[[], None]]] = {
    "two_ranks-data_parallel": data_parallel,
    "two_ranks-sharded": sharded,
    "two_ranks-experts": experts,
    "two_ranks-tensor_parallel": tensor_parallel,
    "two_ranks-pipeline": pipeline,
}


def record_rank(rank: int, folder: Path, name: str, port: int, slow: bool) -> None:  # noqa: FBT001 -- spawn passes positions
    """Join the process group of both ranks, and record the job on this rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(RANKS))
    # pretend that there are two hosts: NCCL refuses two ranks of one host on one GPU
    os.environ["NCCL_HOSTID"] = f"host{rank}"
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    backend = os.environ.get("BACKEND", "nccl" if DEVICE == "cuda" else "gloo")
    dist.init_process_group(backend, rank=rank, world_size=RANKS)
    torch.manual_seed(rank)
    scenario = Scenario(JOBS[name](rank, slow=slow), {"with_stack": True, "with_modules": True})
    record(scenario, folder, f"rank{rank}")
    dist.barrier()
    dist.destroy_process_group()


def record_jobs(folder: Path, names: list[str]) -> None:
    """Record each of these jobs twice: without and with a delay on rank 1."""
    for number, name in enumerate(names):
        for slow in (False, True):
            target = folder / (f"{name}-slow_rank1" if slow else name)
            arguments = (target, name, 29600 + 2 * number + slow, slow)
            multiprocessing.spawn(record_rank, arguments, nprocs=RANKS)
