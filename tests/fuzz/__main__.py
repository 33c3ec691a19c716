"""`python -m tests.fuzz`, which is `bin/fuzz`."""

from __future__ import annotations

import sys

from tests.fuzz.harness import main

sys.exit(main())
