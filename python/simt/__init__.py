"""simt: GPU programming from Python, on an NVIDIA GPU or on the CPU."""
