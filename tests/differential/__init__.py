"""Random tables, changelogs and queries; what rejoin emits, against DuckDB's answer."""
