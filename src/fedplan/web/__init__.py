"""The explorer, a local web page, and the report, a single file."""
