"""How far explanations can be believed: the questions that measure them, and the audit of any explanation."""
