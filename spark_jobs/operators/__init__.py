"""Strategy to Spark: one file per physical node, one public function `build_x`."""
