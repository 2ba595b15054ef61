"""Measure how much longer it takes to read a trace from an S3 server on the same machine than from disk.

    python benchmarks/remote.py --trace big.json.gz [--server minio] [--rounds 3]

Three processes alternate: one reads the trace from disk, one reads it from the bucket, and one only downloads its bytes
with boto3. The third process shows how long server and connection take. `--server` is the path of MinIO, which `go
install github.com/minio/minio@latest` builds. The default is moto, a test server that may itself be the bottleneck.
The results are wall times and CPU times of the processes, in seconds. The server uses the same cores; its CPU time is
not included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

READ = """
import holotrace
(rank_trace,) = holotrace.open_trace({address!r}).ranks.values()
print(rank_trace.health.bytes_decoded)
"""
FETCH = """
import boto3, os
body = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT"]).get_object(Bucket="traces", Key="trace")["Body"]
print(sum(map(len, body.iter_chunks(1 << 20))))
"""
IMPORT_CLIENT = "import holotrace, polars; holotrace.open_trace; import s3fs; print(0)"
IMPORT_ALONE = "import holotrace, polars; holotrace.open_trace; print(0)"
USER = "benchmark-user"


@dataclass(frozen=True)
class Run:
    """The measurements of a finished process."""

    seconds: float
    processor_seconds: float
    printed: int


def run(code: str, environment: dict[str, str]) -> Run:
    """Run `code` in a new process with a new cache."""
    with tempfile.TemporaryDirectory() as cache:
        environ = {**os.environ, **environment, "HOLOTRACE_CACHE_DIR": cache}
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ)  # noqa: S603
        assert process.stdout is not None  # noqa: S101 -- for the type checker
        printed = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    if status != 0:
        sys.exit(f"failed:\n{code}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, int(printed.split()[-1]))


@contextmanager
def bucket(trace: Path, server: str | None, port: int) -> Iterator[dict[str, str]]:
    """Start a server that has the trace, and return the environment variables for its clients."""
    with tempfile.TemporaryDirectory() as folder:
        keys = {"AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": USER, "AWS_DEFAULT_REGION": "us-east-1"}
        environment = {**keys, "S3_ENDPOINT": f"http://127.0.0.1:{port}"}
        moto = [sys.executable, "-m", "moto.server", "-p", str(port)]
        minio = [server or "", "server", folder, "--address", f"127.0.0.1:{port}", "--quiet"]
        environ = {**os.environ, "MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": USER}
        command = minio if server else moto
        with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
            try:
                fill(trace, environment)
                yield environment
            finally:
                process.terminate()


def fill(trace: Path, environment: dict[str, str]) -> None:
    """Wait until the server answers, then put the trace into the bucket."""
    client = boto3.client(
        "s3",
        endpoint_url=environment["S3_ENDPOINT"],
        aws_access_key_id=USER,
        aws_secret_access_key=USER,
        region_name="us-east-1",
        config=Config(connect_timeout=5, retries={"max_attempts": 1}),
    )
    for _ in range(60):
        try:
            client.create_bucket(Bucket="traces")
            break
        except (BotoCoreError, ClientError):
            time.sleep(1)
    client.upload_file(str(trace), "traces", "trace")


def measure(trace: Path, environment: dict[str, str], rounds: int) -> dict[str, object]:
    """Run all processes `rounds` times, alternating, and return the medians."""
    programs = {
        "read from the disk": READ.format(address=str(trace)),
        "read from S3": READ.format(address="s3://traces/trace"),
        "fetch alone": FETCH,
        "imports for reading from the disk": IMPORT_ALONE,
        "imports for reading from S3": IMPORT_CLIENT,
    }
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, code in programs.items():
            runs[name].append(run(code, environment))
    seconds = {name: statistics.median(finished.seconds for finished in done) for name, done in runs.items()}
    processor = {
        name: statistics.median(finished.processor_seconds for finished in done) for name, done in runs.items()
    }
    return {
        "trace": trace.name,
        "bytes": trace.stat().st_size,
        "json_gb": runs["read from the disk"][0].printed / 1e9,
        "load": os.getloadavg()[0],
        "seconds": seconds,
        "processor_seconds": processor,
        "S3 / disk, seconds": seconds["read from S3"] / seconds["read from the disk"],
        "S3 / disk, processor": processor["read from S3"] / processor["read from the disk"],
        "MB/s fetched alone": trace.stat().st_size / 1e6 / seconds["fetch alone"],
    }


def main() -> None:
    """Parse the options, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--server", help="the path of MinIO")
    parser.add_argument("--port", type=int, default=9_123)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with bucket(options.trace, options.server, options.port) as environment:
        print(json.dumps(measure(options.trace.resolve(), environment, options.rounds), indent=2))


if __name__ == "__main__":
    main()
