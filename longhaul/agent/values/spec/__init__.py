"""A spec is what a user may say about an agent, with the seed's names, limits and defaults."""
