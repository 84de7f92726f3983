"""Entries say what has happened, in the past tense: one file for each subject, and all of them in `every`."""
