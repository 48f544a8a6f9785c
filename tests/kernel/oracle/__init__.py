"""Random changelogs against plain recomputation, after every step."""
