"""A life of a session leaves things behind, and the next one begins with them: roll-overs, imports, copies."""
