"""Critical paths and call stacks as objects, with HTA's interface.

`graphs.<module>` imports the module on first use, so a script loads only the modules it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta.facade.imports.later import submodules_of

if TYPE_CHECKING:
    from hta.facade.graphs import critical_path as critical_path
else:
    __getattr__ = submodules_of(__name__)
