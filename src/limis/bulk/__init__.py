"""Many rows, more than memory holds: a folder of Parquet explained part by part, by several workers.

A *part* is a fixed slice of one input file, and one file of the output, which is there whole or not at all. So a worker
that dies costs the part it was at, a run that ends is taken up where it stopped, and no row is lost or told twice.
"""

from limis.bulk.running import BulkResult, explain_dataset

__all__ = ["BulkResult", "explain_dataset"]
