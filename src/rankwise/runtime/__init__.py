"""The process that a fit runs in: threads, memory, signals, progress, and what is computed once."""
