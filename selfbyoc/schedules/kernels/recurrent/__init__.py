"""Recurrent layers: the steps of a sequence in one loop, the state's product in register tiles."""
