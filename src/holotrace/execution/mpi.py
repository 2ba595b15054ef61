"""Process the ranks of a trace with the workers of an MPI job.

    mpiexec -n 9 python -m mpi4py.futures -m holotrace summary JOB --mpi

This command starts nine processes: `holotrace summary` and eight workers. In Python, an
`mpi4py.futures.MPIPoolExecutor` can be passed as the executor directly. MPI ends the whole job if it loses a process;
run the command again to continue from the cache.
"""

from __future__ import annotations

from concurrent.futures import Executor

from holotrace.errors import InvalidOptionError
from holotrace.execution.extras import imported


def mpi() -> Executor:
    """Return the executor of this process's MPI job; use it in a `with` block.

    Raises:
        InvalidOptionError: mpi4py is not installed, or the job has no other process.
    """
    futures = imported("mpi4py.futures", extra="mpi")
    if imported("mpi4py.MPI", extra="mpi").COMM_WORLD.Get_size() == 1:
        message = "--mpi: the job has no other process; start with mpiexec -n N python -m mpi4py.futures -m holotrace …"
        raise InvalidOptionError(message)
    executor: Executor = futures.MPIPoolExecutor()
    return executor
