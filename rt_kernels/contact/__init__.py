"""Contact kernels: pairs of geometric primitives, the reaction law, spring-loaded latches."""
