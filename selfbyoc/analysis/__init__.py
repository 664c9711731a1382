"""Questions about a partitioned module and its kernels; nothing here changes them."""
