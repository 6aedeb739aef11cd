"""`python -m hil_server` is `hil-server`."""

import sys

from hil_server.cli import main

sys.exit(main())
