"""One module a command, imported when it is called; each has `run(options)`, which returns the exit code."""
