"""Access to files by local path or by URL; fsspec is imported only for URLs."""

from holotrace.locations.leftovers import (
    draft_name,
    drafts_of,
    is_left_behind,
    is_temporary,
    remove_left_behind,
    scratch_folder,
    temporary_name,
)
from holotrace.locations.location import Address, Location, address_text, is_url, located, name_of, side_by_side
from holotrace.locations.remote_path import RemotePath
from holotrace.locations.remote_stream import RemoteStream, native_source
from holotrace.locations.scan import Child, scan
from holotrace.locations.status import Status, status_of
from holotrace.locations.writing import drafted, expect_writable_folder, remove_tree, sync_file, sync_folder

__all__ = [
    "Address",
    "Child",
    "Location",
    "RemotePath",
    "RemoteStream",
    "Status",
    "address_text",
    "draft_name",
    "drafted",
    "drafts_of",
    "expect_writable_folder",
    "is_left_behind",
    "is_temporary",
    "is_url",
    "located",
    "name_of",
    "native_source",
    "remove_left_behind",
    "remove_tree",
    "scan",
    "scratch_folder",
    "side_by_side",
    "status_of",
    "sync_file",
    "sync_folder",
    "temporary_name",
]
