"""What runs per row: Scala sources and their build; `Kernel` is the one object Python calls."""
