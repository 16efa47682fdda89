"""One file for a fitted explainer, written without pickle; what is loaded explains as before, bit for bit.

The file is a zip archive. ``manifest.json`` says what the explainer is and has the SHA-256 of the other members:
``arrays.safetensors`` (every array), ``training.parquet`` (the training rows in the user's own columns and types)
and, for XGBoost and LightGBM, the model in its native format.
"""

from limis.store.explainers import load, save

__all__ = ["load", "save"]
