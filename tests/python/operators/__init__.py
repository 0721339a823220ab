"""Whether operators compute what torch's do: OpInfo's samples, gradients, other sizes, convolutions, small functions."""
