"""What a browser shows: the explorer, a local server and its page."""
