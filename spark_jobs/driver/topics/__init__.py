"""The topics of a running query: where reading starts, which are new, which were made anew."""
