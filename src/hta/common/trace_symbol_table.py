"""The symbol table, where scripts written for Holistic Trace Analysis import it from."""

from __future__ import annotations

from hta.facade.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name

__all__ = ["TraceSymbolTable", "decode_symbol_id_to_symbol_name"]
