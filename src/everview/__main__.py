"""`python -m everview` is `everview`."""

from __future__ import annotations

from everview.cli.main import main

if __name__ == "__main__":
    main(prog_name="everview")
