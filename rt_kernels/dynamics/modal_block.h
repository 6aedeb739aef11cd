/* One fused pass over the modes of a flexible craft: projection of the loads, exact update, and output at the port.
 * Layout, equations and units: modal.pyx.
 */
#ifndef HIL_MODAL_BLOCK_H
#define HIL_MODAL_BLOCK_H

#define MODAL_LANES 4        /* modes per block */
#define MODAL_COEFFICIENTS 5 /* c1 c2 c3 c4 c5 of a mode (c6 = c2) */

typedef void (*modal_pass_function)(const double *blocks, double *state, int n_blocks, int n_loads, const double *load, double *displacement,
                                    double *rate);

/* The same C text compiled for the base x86-64 instructions, AVX2 and AVX-512 registers: every lane sees the same operations in the same order, so the
 * bits agree. `modal_pass(name)` gives the variant "base", "avx2" or "avx512", or the best that the processor has for "auto"; NULL if it has not. */
modal_pass_function modal_pass(const char *name);

#endif
