"""Jobs written and started in Python; `rejoin` is its public face, docs/python.md its manual."""
