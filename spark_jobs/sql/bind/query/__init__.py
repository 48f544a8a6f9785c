"""A query: FROM, joins, subqueries, unions, aggregates and rankings."""
