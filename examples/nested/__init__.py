"""Examples of nested collections."""
