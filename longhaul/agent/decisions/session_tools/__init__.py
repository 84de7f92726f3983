"""The tools that a session answers itself, each from its arguments and the journal."""
