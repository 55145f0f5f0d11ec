"""The commands that declare views in another language than SQL."""

from __future__ import annotations

from everview.cli.agca import agca
from everview.cli.datalog import datalog
from everview.cli.relalg import relalg

LANGUAGES = (datalog, relalg, agca)
