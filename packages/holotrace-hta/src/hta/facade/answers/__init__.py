"""One module per question, each returning frames with HTA's columns.

`answers.<module>` imports the module on first use, so a script loads only the modules it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta.facade.imports.later import submodules_of

if TYPE_CHECKING:
    from hta.facade.answers import breakdowns as breakdowns
    from hta.facade.answers import counters as counters
    from hta.facade.answers import cupti_counters as cupti_counters
    from hta.facade.answers import dashboard as dashboard
    from hta.facade.answers import kernel_sequences as kernel_sequences
    from hta.facade.answers import launch_statistics as launch_statistics
    from hta.facade.answers import memory as memory
    from hta.facade.answers import memory_bandwidth as memory_bandwidth
    from hta.facade.answers import operator_kernels as operator_kernels
    from hta.facade.answers import queue_length as queue_length
    from hta.facade.answers import stragglers as stragglers
    from hta.facade.answers import user_annotations as user_annotations
else:
    __getattr__ = submodules_of(__name__)
