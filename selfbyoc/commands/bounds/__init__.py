"""`bounds`: every access of a kernel proved to stay in its buffer."""
