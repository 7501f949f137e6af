"""What a check found: the findings, and the report of them for a terminal."""
