"""How many executors a job needs: a model of its costs, fitted to measured runs."""
