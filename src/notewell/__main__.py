"""`python -m notewell` is the command `notewell`."""

from __future__ import annotations

from notewell.surfaces.cli.main import main

if __name__ == "__main__":
    main()
