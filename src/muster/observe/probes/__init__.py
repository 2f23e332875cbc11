"""Sources of evidence about living runs: processes, GPUs, the kernel, memory groups, files."""
