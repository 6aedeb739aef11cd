"""Motion of the craft: one stage per file or folder, and the kernels that only these stages use."""
