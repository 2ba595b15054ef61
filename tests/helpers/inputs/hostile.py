"""Names with control characters or with the first character of a spreadsheet formula, and a job with such names."""

from __future__ import annotations

import unicodedata

from holotrace.testing.builder import TraceBuilder

RED = "\x1b[31m"
CSI = "\x9b31m"
REVERSED = "\u202e"
SEPARATED = "\u2028"
ACTING = f"{RED}{CSI}{REVERSED}{SEPARATED}\x07\x7f\u200b\u2066\r\n\tend"
FORMULA = "=cmd()"
FORMULAS = (FORMULA, "+1+cmd()", "-1+cmd()", "@SUM(A1)", "\t=1", "\r=1")


def steering(text: str) -> set[str]:
    """Return the control and invisible characters of a text, except line breaks."""
    kinds = ("Cc", "Cf", "Zl", "Zp", "Cs", "Co")
    return {letter for letter in text if unicodedata.category(letter) in kinds} - {"\n"}


def hostile_job(ranks: int = 2) -> TraceBuilder:
    """Return a job whose steps, operators, annotations, modules, kernels, collectives and copies have hostile names."""
    builder = TraceBuilder()
    for rank in range(ranks):
        properties = [{"id": 0, "name": f"GPU{ACTING}", "numSms": 108, "totalGlobalMem": 1 << 34}]
        builder.rank(rank).header(deviceProperties=properties, host_name=ACTING)
        builder.step(1, 0, 1_000).step(2, 1_000, 1_000).step(3, 2_000, 1_000)
        for start in (0, 1_000, 2_000):
            builder.annotation(f"{FORMULA}{ACTING}", start_us=start + 1, duration_us=900)
            builder.operator(f"{FORMULA}aten{ACTING}", start_us=start + 10, duration_us=300)
            builder.operator(f"nn.Module: {ACTING}", start_us=start + 12, duration_us=250)
            for index, name in enumerate((f"{FORMULA}{ACTING}", f"gemm{ACTING}", *FORMULAS)):
                at = start + 100 + 20 * index
                builder.kernel(name, start_us=at, duration_us=10, launch_us=start + 20 + 2 * index)
            builder.copy(f"Memcpy HtoD {ACTING}", start_us=start + 300, duration_us=5, byte_count=4_096)
            builder.event(
                ph="i",
                cat="cpu_instant_event",
                s="t",
                name="[memory]",
                pid=1_000 + rank,
                tid=1,
                ts=start + 15,
                args={
                    "Device Type": 1,
                    "Device Id": 0,
                    "Addr": 4_096 + start,
                    "Bytes": 512,
                    "Total Allocated": 512 * (1 + start // 1_000),
                    "Total Reserved": 4_096,
                },
            )
            builder.collective(f"allreduce{ACTING}", start_us=start + 400, duration_us=50 + rank)
    return builder
