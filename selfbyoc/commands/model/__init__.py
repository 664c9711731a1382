"""Commands on a model or a library: explain, melting, verify, show, compile, run."""
