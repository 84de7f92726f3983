"""The reducer changes the session state by each entry."""
