"""Classify Python frames by the names that PyTorch records: `training.py(51): step`, `<built-in function sleep>`.

PyTorch strips the folders in `sys.path` from file names, so the file names of an installed library begin with its
package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import polars as pl

from holotrace.enrich.host.host_names import MODULE_PREFIX, without_addresses

FRAME = r"^(.+?)\((\d+)\): (.*)$"
"""File, line and function. The line is the function's first line, or, for a generator, the line at which it continues:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/profiler_python.cpp"""

BUILT_IN = r"^<built-in "
"""Functions written in C."""

LOADING = r"DataLoader.*__next__|^torch/utils/data/|DataPipe"
"""Names of ranges in which the main process gets a batch."""

WAITING = (
    r"(?i)\b_?(wait|synchronize|barrier|all_?reduce|all_?gather\w*|reduce_?scatter\w*|broadcast|send|recv|isend|irecv"
    r"|all_?to_?all\w*|result|acquire)\b"
)
"""Names of functions and operators that wait for another rank, thread or process."""

TORCH_WAITING = (
    r"^<built-in method (wait|barrier|monitored_barrier|send|recv|recv_anysource|all_?reduce|_?all_?gather|_?all_?gather_base|"
    r"reduce|_?reduce_scatter|_?reduce_scatter_base|broadcast|all_?to_?all|all_?to_?all_base|gather|scatter)(_coalesced)? of "
    r"(pybind11_|PyCapsule)"
)
"""Full names of PyTorch's methods in which a thread waits for other ranks.

Methods of other objects, such as locks in the user's code, do not match.
"""

_LIBRARIES = (
    *("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchmetrics", "torchrec", "torch_xla"),
    *("functorch", "triton", "apex", "transformer_engine", "flash_attn", "xformers", "bitsandbytes", "deepspeed"),
    *("accelerate", "transformers", "peft", "trl", "diffusers", "tokenizers", "safetensors", "huggingface_hub"),
    *("lightning", "lightning_fabric", "pytorch_lightning", "lightning_utilities", "megatron", "fairscale", "timm"),
    *("numpy", "scipy", "pandas", "pyarrow", "sklearn", "PIL", "cv2", "sympy", "mpmath", "networkx", "einops"),
    *("numba", "llvmlite", "cupy", "jax", "jaxlib", "tqdm", "fsspec", "s3fs", "aiohttp", "requests", "urllib3"),
    *("yaml", "jinja2", "omegaconf", "hydra", "click", "typer", "absl", "rich", "psutil", "packaging", "filelock"),
    *("wandb", "mlflow", "tensorboard", "tensorboardX", "IPython", "ipykernel", "traitlets", "tornado", "zmq"),
    *("jupyter_client", "ray", "dask", "distributed", "cloudpickle", "setuptools", "pkg_resources", "_distutils_hack"),
    *("pytest", "_pytest", "pluggy", "vllm", "sglang", "site-packages", "dist-packages"),
)
_STANDARD_PACKAGES = (
    *("asyncio", "collections", "concurrent", "ctypes", "dbm", "distutils", "email", "encodings", "html", "http"),
    *("importlib", "json", "lib2to3", "logging", "multiprocessing", "pathlib", "re", "sqlite3", "string", "sysconfig"),
    *("tomllib", "unittest", "urllib", "wsgiref", "xml", "xmlrpc", "zipfile", "zoneinfo"),
)
_REMOVED_FROM_STANDARD = ("asynchat", "asyncore", "cgi", "cgitb", "imp", "pipes", "smtpd", "telnetlib")
_NAMES_OF_SCRIPTS = frozenset(
    {"calendar", "cmd", "code", "graphlib", "profile", "statistics", "test", "timeit", "trace"}
)
"""Names of standard modules that jobs rarely use; a file with such a name is probably the user's script."""

_LIBRARY_FOLDERS = (*_LIBRARIES, *_STANDARD_PACKAGES)
_FOLDER = r"^([^/\\]*)[/\\]"
"""The first folder of a file name."""

_SCRIPT = r"^([^/\\]*)\.py$"
"""The module of a file without a folder."""

_INTERACTIVE = r"^<(ipython-input|stdin)"
_GENERATED = (
    r"(^|[/\\])(torchinductor_[^/\\]*|\.triton|torch_compile_debug)[/\\]|[/\\][a-z2-7]{2}[/\\]c[a-z2-7]{40,}\.py$"
)
"""Files that torch.compile and Triton write; in a custom cache folder, the hash in the file name identifies them."""

_INSTALLED = r"[/\\](site-packages|dist-packages)[/\\]|(^|[/\\])lib[/\\]python3"
_SEPARATORS = "/\\"
OF_AUTOGRAD = "autograd::engine::evaluate_function: "
"""Autograd records a range around each backward operator; the name of the range begins with this prefix."""
_MODULE_NUMBER = rf"^{MODULE_PREFIX}(.*?)_\d+$"


def is_user_frame(names: pl.Series, libraries: Sequence[str] = ()) -> pl.Series:
    """Return whether each name is a frame in the user's own files, rather than in PyTorch, a library or generated code.

    Args:
        names: names of events.
        libraries: further folders that contain libraries, as written in the trace: `mylib`, `/opt/mylib`.

    >>> is_user_frame(pl.Series(["training.py(51): step", "torch/_ops.py(12): __call__", "<built-in function sleep>"])).to_list()
    [True, False, False]
    """
    file = pl.col("file")
    is_inner = file.str.starts_with("<") & ~file.str.contains(_INTERACTIVE)
    folder, script = (file.str.extract(pattern).fill_null("") for pattern in (_FOLDER, _SCRIPT))
    is_other = is_inner | folder.is_in(_LIBRARY_FOLDERS) | script.is_in(_standard_scripts())
    is_other |= file.str.contains(_GENERATED) | file.str.contains(_INSTALLED)
    for library in libraries:
        is_other |= file.str.starts_with(f"{library.rstrip(_SEPARATORS)}/") | (file == f"{library}.py")
    is_user = (file.is_not_null() & ~is_other).fill_null(value=False)
    return names.str.extract(FRAME, 1).to_frame("file").select(is_user.alias(names.name)).to_series()


_OF_TORCH = ("torch", "torch_xla", "functorch", "triton")


def is_library_frame(names: pl.Series) -> pl.Series:
    """Return whether each name is a frame of an installed library other than PyTorch and Python's standard library.

    >>> is_library_frame(pl.Series(["transformers/utils.py(5): load", "torch/_ops.py(12): f", "training.py(5): step"])).to_list()
    [True, False, False]
    """
    file = pl.col("file")
    libraries = [name for name in _LIBRARIES if name not in _OF_TORCH]
    is_library = file.str.extract(_FOLDER).is_in(libraries) | file.str.contains(_INSTALLED)
    table = names.str.extract(FRAME, 1).to_frame("file")
    return table.select(is_library.fill_null(value=False).alias(names.name)).to_series()


def is_built_in(names: pl.Series) -> pl.Series:
    """Return whether each name is a function written in C."""
    return names.str.contains(BUILT_IN).fill_null(value=False)


def shown_names(names: pl.Series) -> pl.Series:
    """Return the names without object addresses, module numbers or the prefix of autograd functions.

    >>> names = ["nn.Module: Block_3", "<built-in method to of Tensor object at 0x7fc7>"]
    >>> shown_names(pl.Series([*names, "autograd::engine::evaluate_function: MmBackward0"])).to_list()
    ['nn.Module: Block', '<built-in method to>', 'MmBackward0']
    """
    named = without_addresses(names).str.replace(_MODULE_NUMBER, f"{MODULE_PREFIX}$1")
    return named.str.strip_prefix(OF_AUTOGRAD)


def frame_parts(names: pl.Series) -> pl.DataFrame:
    """Return file (str), line (int64) and function (str) of Python frames."""
    parts = {"file": 1, "line": 2, "function": 3}
    table = pl.DataFrame([names.str.extract(FRAME, group).alias(name) for name, group in parts.items()])
    return table.with_columns(pl.col("line").cast(pl.Int64, strict=False))


def _standard_scripts() -> list[str]:
    modules = (set(sys.stdlib_module_names) | {*_REMOVED_FROM_STANDARD, "typing_extensions", "six"}) - _NAMES_OF_SCRIPTS
    return sorted(modules)
