"""What is run from a shell: a folder a command, and beside them what commands share."""
