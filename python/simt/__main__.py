"""python -m simt is the command simt."""

import sys

from simt.cli import main

sys.exit(main())
