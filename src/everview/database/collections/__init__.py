"""Tables whose collections are stored as dictionaries: rows in, deep updates, and rows out."""
