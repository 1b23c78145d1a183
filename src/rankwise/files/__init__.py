"""Files and folders that appear whole or not at all, and what killed processes left of them."""
