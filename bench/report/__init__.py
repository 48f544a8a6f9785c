"""Tables and pictures of docs/bench.md, made of the JSON files that `rejoin bench` writes."""
