"""The recorded Debezium run, decoded a second time by other means than the kernel's."""
