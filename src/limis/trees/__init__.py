"""Trees as local models: what they split on, what they are fitted on, what they say, and how that reads."""
