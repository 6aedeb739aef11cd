/* Cases of the generated peer: the text that peer_casadi wrote (PEER_TEXT; BASE position coordinates of a free base, TURNING joints),
 * compiled in the same unit as its callers, so that its tests for absent arguments fall away and nothing of CasADi's calling convention is
 * timed.  The form `..._sines` gets its sines where our own kernels get theirs. */
#include <stdint.h>
#include <stdlib.h>

#include "bench_case.h"
#include "tree_sincos.inc"

#define CASADI_SYMBOL_EXPORT static inline __attribute__((always_inline, unused))
#include PEER_TEXT

#define ANGLES ((TURNING + 7) / 8 * 8)

typedef struct {
    int nq, nv;
    const double *q, *v, *tau, *a; /* BENCH_STATES rows each */
    double *out;
    unsigned at;
} Peer;

void *generated_context(int nq, int nv, const double *q, const double *v, const double *tau, const double *a)
{
    Peer *x = calloc(1, sizeof *x);
    *x = (Peer){nq, nv, q, v, tau, a, calloc((size_t)(nv * nv + 8), 8), 0};
    return x;
}

#define WITHOUT_SINES
#define WITH_SINES                                                                                                                          \
    for (int j = 0; j < ANGLES; ++j) angle[j] = j < TURNING ? q[BASE + j] : 0.0;                                                            \
    for (int j = 0; j < ANGLES; j += LANES) sincos_lanes((const lanes *)&angle[j], (lanes *)&sine[j], (lanes *)&cosine[j]);

/* kernel, its timed case over the states, and one answer to check before timing */
#define CASE(name, third, sines)                                                                                                            \
    __attribute__((noinline, nonnull)) static void kernel_##name(const double *restrict q, const double *restrict v,                        \
                                                                 const double *restrict u, double *restrict out)                            \
    {                                                                                                                                       \
        double angle[ANGLES] __attribute__((aligned(64))), sine[ANGLES] __attribute__((aligned(64)));                                       \
        double cosine[ANGLES] __attribute__((aligned(64)));                                                                                 \
        sines                                                                                                                               \
        const double *given[5] = {q, v, u, cosine, sine};                                                                                   \
        double *result[1] = {out};                                                                                                          \
        name(given, result, 0, 0, 0);                                                                                                       \
    }                                                                                                                                       \
    void time_##name(void *context, int repetitions)                                                                                        \
    {                                                                                                                                       \
        Peer *x = context;                                                                                                                  \
        for (int i = 0; i < repetitions; ++i) {                                                                                             \
            const unsigned s = x->at++ & (BENCH_STATES - 1);                                                                                \
            kernel_##name(x->q + s * x->nq, x->v + s * x->nv, x->third + s * x->nv, x->out);                                                \
        }                                                                                                                                   \
    }                                                                                                                                       \
    void answer_##name(void *context, int s, double *out)                                                                                   \
    {                                                                                                                                       \
        Peer *x = context;                                                                                                                  \
        kernel_##name(x->q + s * x->nq, x->v + s * x->nv, x->third + s * x->nv, out);                                                       \
    }
#define FORMS(name, third)              \
    CASE(name, third, WITHOUT_SINES)    \
    CASE(name##_shared, third, WITHOUT_SINES) \
    CASE(name##_sines, third, WITH_SINES)
FORMS(forward_local, tau)
FORMS(forward_world, tau)
FORMS(inverse, a)
FORMS(mass_matrix_local, a)
FORMS(mass_matrix_world, a)
