"""`python -m trunkline_controller`."""

import sys

from .cli import main

sys.exit(main())
