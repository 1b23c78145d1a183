"""Data input: files, tables, query ids, preferences, and the validation of all input."""

from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.duels import stack_preferred
from rankwise.data.store import Store, open_store, save_store
from rankwise.data.svmlight import item_ids, iter_svmlight, load_svmlight, save_svmlight
from rankwise.data.tables import PreferenceTable, Table, iter_table, load_preferences, load_table, save_table

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
