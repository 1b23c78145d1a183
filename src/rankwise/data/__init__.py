"""Where data enters: query ids, preferences, and the one door through which input is validated."""

from rankwise.data.clicks import pairs_from_clicks
from rankwise.data.preferences import stack_preferred

__all__ = ["pairs_from_clicks", "stack_preferred"]
