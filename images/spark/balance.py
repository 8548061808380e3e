"""The balance analytics as a main file: one path, whatever Python the image has, in a folder without modules that hide others."""  # noqa: INP001 - a program, no module

import sys

from balance_analytics.jobs.main import main

sys.exit(main())
