"""What bytes mean: option tables, schema mapping, registry client."""
