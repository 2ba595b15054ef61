"""Jobs whose ranks train stages of one model, with schedules of torch.distributed.pipelining."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from models import MICROBATCHES, Perceptron
from planting import Planted
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, PipelineScheduleSingle

WIDTH = 64
SAMPLES = 8
CHUNKS = 2


def one_f_one_b(steps: Iterable[int], planted: Planted) -> None:
    """Train with one stage per rank; forward and backward passes alternate."""
    stage = stage_of(dist.get_rank(), dist.get_world_size(), planted)
    train([stage], Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.MSELoss()), steps, dist.get_rank())


def interleaved(steps: Iterable[int], planted: Planted) -> None:
    """Train with two interleaved stages per rank."""
    stages = chunks(planted)
    train(stages, ScheduleInterleaved1F1B(stages, MICROBATCHES, loss_fn=nn.MSELoss()), steps, dist.get_rank())


def zero_bubble(steps: Iterable[int], planted: Planted) -> None:
    """Train with two stages per rank and a backward pass in two parts: gradients of the inputs, then of the weights."""
    stages = chunks(planted)
    train(stages, ScheduleInterleavedZeroBubble(stages, MICROBATCHES, loss_fn=nn.MSELoss()), steps, dist.get_rank())


def pipeline_and_replicas(steps: Iterable[int], planted: Planted) -> None:
    """Train two replicas of a pipeline of two stages; ranks 0 and 1 run the first stage, ranks 2 and 3 the second."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    position = mesh.get_local_rank("pp")
    stage = stage_of(position, 2, planted, mesh.get_group("pp"))
    run = Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.MSELoss())
    train([stage], run, steps, position, replicas=mesh.get_group("dp"))


def chunks(planted: Planted) -> list[PipelineStage]:
    """Return this rank's stages; neighbouring stages belong to neighbouring ranks."""
    ranks = dist.get_world_size()
    return [stage_of(dist.get_rank() + chunk * ranks, CHUNKS * ranks, planted) for chunk in range(CHUNKS)]


def stage_of(number: int, stages: int, planted: Planted, group: dist.ProcessGroup | None = None) -> PipelineStage:
    """Return one stage: a single block."""
    return PipelineStage(Perceptron(WIDTH, planted), number, stages, torch.device("cpu"), group=group)


def train(
    stages: list[PipelineStage],
    run: PipelineScheduleSingle | PipelineScheduleMulti,
    steps: Iterable[int],
    position: int,
    replicas: dist.ProcessGroup | None = None,
) -> None:
    """Run these training steps; sum the gradients over the replicas, if there are any."""
    parameters = [parameter for stage in stages for parameter in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    is_last = any(stage.is_last for stage in stages)
    for _ in steps:
        samples = torch.randn(MICROBATCHES * SAMPLES, WIDTH)
        target: Tensor | None = torch.zeros_like(samples) if is_last else None
        run.step(*([samples] if position == 0 else []), target=target)
        if replicas is not None:
            for parameter in parameters:
                dist.all_reduce(parameter.grad, group=replicas)
        optimizer.step()
        optimizer.zero_grad()
