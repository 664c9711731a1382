"""What `tools/damage.py` damages, how, and how it judges what then happens."""
