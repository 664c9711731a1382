"""Programs grown from the composites, built and compared: what is wrong shows up here first."""
