"""An incarnation of a session leaves things behind, and the next one begins with them: continue-as-new, imports,
copies."""
