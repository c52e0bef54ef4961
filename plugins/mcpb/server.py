"""Starts `notewell mcp` with the arguments that the host gives."""

import sys

from notewell.surfaces.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "mcp")
    main()
