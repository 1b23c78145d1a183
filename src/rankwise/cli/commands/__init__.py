"""One module per command: `add_arguments(parser)` declares its options, `run(options)` does its work.

Modules import slow dependencies inside functions, so that ``--help`` and usage errors respond at once.
"""
