"""Where data enters: files, query ids, preferences, and the one door through which input is validated."""

from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.preferences import stack_preferred
from rankwise.data.store import Store, open_store
from rankwise.data.store_writer import write_store
from rankwise.data.svmlight import iter_svmlight, load_svmlight
from rankwise.data.svmlight_writer import dump_svmlight

__all__ = [
    "Store",
    "dump_svmlight",
    "iter_svmlight",
    "load_svmlight",
    "open_store",
    "pairs_from_clicks",
    "stack_preferred",
    "write_store",
]
