"""Where data enters: query ids, and the one door through which input is validated."""
