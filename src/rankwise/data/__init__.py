"""Where data enters: files, tables, query ids, preferences, and the one validation boundary."""

from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.preferences import stack_preferred
from rankwise.data.runs import JudgedRuns, judge_runs, read_judgements, read_run, write_run
from rankwise.data.store.reading import Store, open_store
from rankwise.data.store.writer import write_store
from rankwise.data.tables.preferences import PreferenceTable, load_preferences
from rankwise.data.tables.reading import Table, iterate_table, load_table
from rankwise.data.tables.writer import TableWriter, save_table
from rankwise.data.text.comments import item_ids
from rankwise.data.text.svmlight import iter_svmlight, load_svmlight
from rankwise.data.text.writer import dump_svmlight

__all__ = [
    "JudgedRuns",
    "PreferenceTable",
    "Store",
    "Table",
    "TableWriter",
    "dump_svmlight",
    "item_ids",
    "iter_svmlight",
    "iterate_table",
    "judge_runs",
    "load_preferences",
    "load_svmlight",
    "load_table",
    "open_store",
    "pairs_from_clicks",
    "read_judgements",
    "read_run",
    "save_table",
    "stack_preferred",
    "write_run",
    "write_store",
]
