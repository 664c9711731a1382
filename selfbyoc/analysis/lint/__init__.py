"""`selfbyoc.lint`: what is wrong with a composite, found before anything is lowered."""
