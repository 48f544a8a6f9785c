"""One scenario per file; the file name says the rule that it shows."""
