"""Data input: files, tables, query ids, preferences, and the validation of all input."""

from rankwise.data.preferences import PreferenceTable, load_preferences, pairs_from_clicks, stack_preferred
from rankwise.data.store import Store, open_store, save_store
from rankwise.data.svmlight import item_ids, iter_svmlight, load_svmlight, save_svmlight
from rankwise.data.tables import Table, iter_table, load_table, save_table

__all__ = [
    "PreferenceTable",
    "Store",
    "Table",
    "item_ids",
    "iter_svmlight",
    "iter_table",
    "load_preferences",
    "load_svmlight",
    "load_table",
    "open_store",
    "pairs_from_clicks",
    "save_store",
    "save_svmlight",
    "save_table",
    "stack_preferred",
]
