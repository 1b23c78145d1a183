"""Where data enters: files, query ids, preferences, and the one door through which input is validated."""

from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.preferences import stack_preferred
from rankwise.data.svmlight import iter_svmlight, load_svmlight
from rankwise.data.svmlight_writer import dump_svmlight

__all__ = ["dump_svmlight", "iter_svmlight", "load_svmlight", "pairs_from_clicks", "stack_preferred"]
