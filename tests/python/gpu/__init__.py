"""What needs a GPU: the debugger's bars and the speed of compiled models."""
