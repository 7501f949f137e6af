"""From tables to the paper: charts, notebooks, the HTML and the PDF.

In: notebooks and what the analysis returns. Out: figures/ and paper/.
"""
