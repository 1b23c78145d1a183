"""``python -m rankwise`` is the command ``rankwise``."""

import sys

from rankwise.cli import main

sys.exit(main())
