"""What fuzzes is run by hand, and needs packages that the tests do not."""

collect_ignore_glob = ["fuzz_*.py"]
