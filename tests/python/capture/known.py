"""Cases and programs that Pyrite is known to get wrong, each with the reason. A fixed one is taken out of here."""

CASES = {}

# What Pyrite's own programs get wrong, beside the cases above.
NATIVE = {}

PROGRAMS = {}
