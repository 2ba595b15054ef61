"""Work over ranks in the processes of an MPI job.

    mpiexec -n 9 python -m mpi4py.futures -m holotrace summary JOB --mpi

starts one process that runs the command and eight that work for it. In Python `mpi4py.futures.MPIPoolExecutor` is an
executor that fits as it is. MPI ends the whole job when one of its processes is lost; started again, it goes on with
what the cache holds.
"""

from __future__ import annotations

from concurrent.futures import Executor

from holotrace.errors import InvalidOptionError
from holotrace.execution.extras import imported


def mpi() -> Executor:
    """Return the executor of the MPI job that this process is part of, to be used in a `with` block.

    Raises:
        InvalidOptionError: mpi4py is not installed, or no other process is there to do the work.
    """
    futures = imported("mpi4py.futures", extra="mpi")
    if imported("mpi4py.MPI", extra="mpi").COMM_WORLD.Get_size() == 1:
        message = "--mpi: no other process is there; start with mpiexec -n N python -m mpi4py.futures -m holotrace …"
        raise InvalidOptionError(message)
    executor: Executor = futures.MPIPoolExecutor()
    return executor
