"""The search for a server's capacity, without side effects: `search` chooses the next rate."""
