"""Views tell of a session: events, messages, rows of an index."""
