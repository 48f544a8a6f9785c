"""Who is measured: rejoin and the engines beside it, each at settings that are written down."""
