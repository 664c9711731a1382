"""What measures and tries the library from outside: benchmarks beside peers, programs that grow."""
