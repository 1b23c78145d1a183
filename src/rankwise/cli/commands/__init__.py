"""One module per command: `add_arguments(parser)` declares its options, `run(options)` does its work.

Modules import what is slow to import inside functions, so that ``--help`` and typos are answered at once.
"""
