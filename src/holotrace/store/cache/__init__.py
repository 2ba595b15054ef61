"""The cache: the tables of trace files, kept on disk so that opening a trace again takes only milliseconds."""

from holotrace.store.cache.cache import (
    BESIDE_NAME,
    DEFAULT_LIMIT_BYTES,
    FOLDER_VARIABLE,
    LIMIT_VARIABLE,
    Cache,
    CacheOption,
    CacheWriteError,
    user_cache_folder,
)
from holotrace.store.cache.entry import Entry, Reading, Stamp

__all__ = [
    "BESIDE_NAME",
    "DEFAULT_LIMIT_BYTES",
    "FOLDER_VARIABLE",
    "LIMIT_VARIABLE",
    "Cache",
    "CacheOption",
    "CacheWriteError",
    "Entry",
    "Reading",
    "Stamp",
    "user_cache_folder",
]
