"""The nodes of both plans, and the physical ones as the JSON that the kernel reads."""
