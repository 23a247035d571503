"""Training one run: what the loss is made of, and the loop."""
