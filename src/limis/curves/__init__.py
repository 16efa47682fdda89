"""Response curves: what the black box would say with other values, learned from how it answered for training rows."""
