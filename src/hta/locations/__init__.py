"""Files wherever they are: paths of this machine, which fsspec is never imported for, and URLs."""

from hta.locations.location import Address, Location, address_text, is_url, located, name_of, side_by_side
from hta.locations.reading import RemoteStream, native_source
from hta.locations.remote_path import RemotePath
from hta.locations.status import Child, Status, scan, status_of
from hta.locations.writing import drafted, expect_writable_folder, remove_tree

__all__ = [
    "Address",
    "Child",
    "Location",
    "RemotePath",
    "RemoteStream",
    "Status",
    "address_text",
    "drafted",
    "expect_writable_folder",
    "is_url",
    "located",
    "name_of",
    "native_source",
    "remove_tree",
    "scan",
    "side_by_side",
    "status_of",
]
