"""Where data enters: files, tables, query ids, preferences, and the one door through which input is validated."""

from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.preference_tables import PreferenceTable, load_preferences
from rankwise.data.preferences import stack_preferred
from rankwise.data.store import Store, open_store
from rankwise.data.store_writer import write_store
from rankwise.data.svmlight import iter_svmlight, load_svmlight
from rankwise.data.svmlight_writer import dump_svmlight
from rankwise.data.table_writer import TableWriter, save_table
from rankwise.data.tables import Table, iterate_table, load_table

__all__ = [
    "PreferenceTable",
    "Store",
    "Table",
    "TableWriter",
    "dump_svmlight",
    "iter_svmlight",
    "iterate_table",
    "load_preferences",
    "load_svmlight",
    "load_table",
    "open_store",
    "pairs_from_clicks",
    "save_table",
    "stack_preferred",
    "write_store",
]
