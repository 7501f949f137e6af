"""JupyterLab for the study, started in the project's root by `./shell jupyter lab`."""

import os

# A kernel starts in notebooks/, and notebooks import the study's package.
os.environ["PYTHONPATH"] = os.getcwd()
