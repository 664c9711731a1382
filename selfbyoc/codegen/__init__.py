"""From an OpGraph to a runtime module: stack, schedule, lower; and the hooks that TVM calls."""
