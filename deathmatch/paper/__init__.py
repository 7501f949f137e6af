"""From tables to the paper: charts, notebooks, the HTML and the PDF.

In: notebooks and what the analysis returns. Out: figures/ and paper/.
"""

MIME = "application/vnd.deathmatch+json"
"""The kind of output in which a notebook holds what the paper needs."""
