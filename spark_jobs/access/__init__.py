"""Who we are to brokers and registries: stores, credentials, and one set of options for both."""
