/* Interleaved timing: in every round each case gives one figure, the median of `samples` runs of about 20 us; so ratios compare the same
 * minutes.  Also the cases of our own kernels, called through the same function pointers that a stage calls. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_case.h"
#include "rt_kernels/multibody/tree_kernel.h"

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static int ascending(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b; }

/* out: rounds x cases, ns per repetition */
void bench_interleaved(int cases, bench_run_fn *run, void **context, int rounds, int samples, double sample_ns, double *out)
{
    int *repetitions = malloc(sizeof(int) * (size_t)cases);
    double *one = malloc(sizeof(double) * (size_t)samples);
    for (int i = 0; i < cases; ++i) {
        for (int k = 0; k < 8; ++k) run[i](context[i], 4);
        for (int r = 1;; r *= 2) {
            double least = 1e300;
            for (int k = 0; k < 5; ++k) {
                const double begin = now_ns();
                run[i](context[i], r);
                const double t = now_ns() - begin;
                if (t < least) least = t;
            }
            if (least > sample_ns || r > (1 << 24)) {
                repetitions[i] = (int)(r * sample_ns / least);
                if (repetitions[i] < 1) repetitions[i] = 1;
                break;
            }
        }
    }
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < cases; ++i) {
            run[i](context[i], repetitions[i]);
            for (int k = 0; k < samples; ++k) {
                const double begin = now_ns();
                run[i](context[i], repetitions[i]);
                one[k] = (now_ns() - begin) / repetitions[i];
            }
            qsort(one, (size_t)samples, sizeof(double), ascending);
            out[round * cases + i] = one[samples / 2];
        }
    free(repetitions);
    free(one);
}

/* ---- our kernels ---------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    TreeModel *model;
    TreeWork *work;
    const double *q, *v, *tau, *a; /* BENCH_STATES rows each */
    double *out, *q_now, *v_now;
    unsigned at;
} Own;

void *own_context(TreeModel *model, TreeWork *work, const double *q, const double *v, const double *tau, const double *a)
{
    Own *x = calloc(1, sizeof *x);
    *x = (Own){model, work, q, v, tau, a, calloc((size_t)(model->nv * model->nv + 8), 8), calloc((size_t)model->nq, 8), calloc((size_t)model->nv, 8), 0};
    return x;
}
#define EACH(body)                                                                                                       \
    {                                                                                                                    \
        Own *x = context;                                                                                                \
        const TreeKernels *kernel = &x->model->kernels;                                                                  \
        const int nq = x->model->nq, nv = x->model->nv;                                                                  \
        for (int i = 0; i < repetitions; ++i) {                                                                          \
            const unsigned s = x->at++ & (BENCH_STATES - 1);                                                             \
            body;                                                                                                        \
        }                                                                                                                \
    }
void own_forward(void *context, int repetitions)
EACH(kernel->forward_dynamics(x->model, x->work, x->q + s * nq, x->v + s * nv, x->tau + s * nv, 0, x->out))
void own_inverse(void *context, int repetitions)
EACH(kernel->inverse_dynamics(x->model, x->work, x->q + s * nq, x->v + s * nv, x->a + s * nv, 0, x->out, 0))
void own_mass_matrix(void *context, int repetitions) EACH(kernel->mass_matrix(x->model, x->work, x->q + s * nq, x->out); (void)nv)
/* a whole fixed step, symplectic Euler: state in, accelerations, new velocities, new positions on the manifold */
void own_step(void *context, int repetitions)
EACH(memcpy(x->q_now, x->q + s * nq, 8 * (size_t)nq); memcpy(x->v_now, x->v + s * nv, 8 * (size_t)nv);
     kernel->forward_dynamics(x->model, x->work, x->q_now, x->v_now, x->tau + s * nv, 0, x->out);
     for (int k = 0; k < nv; ++k) x->v_now[k] += 1e-3 * x->out[k];
     x->model->operations.integrate(x->model, x->q_now, x->v_now, 1e-3))
