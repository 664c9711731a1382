"""What every room uses and nothing of TVM: files, programs and packages of others, text, Ctrl-C."""
