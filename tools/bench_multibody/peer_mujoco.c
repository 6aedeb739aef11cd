/* The peer of a whole step: MuJoCo, Euler, contacts disabled. */
#include <mujoco/mujoco.h>
#include <stdlib.h>
#include <string.h>
#include "bench_case.h"

typedef struct { mjModel *model; mjData *data; const double *q, *v, *tau; unsigned at; } Peer;

/* q in MuJoCo's order (quaternion wxyz) */
void *mujoco_context(const char *file, const double *q, const double *v, const double *tau, char *error, int error_size)
{
    Peer *x = calloc(1, sizeof *x);
    x->model = mj_loadXML(file, NULL, error, error_size);
    if (!x->model) return NULL;
    x->data = mj_makeData(x->model);
    x->q = q;
    x->v = v;
    x->tau = tau;
    return x;
}
static void set(Peer *x)
{
    const unsigned s = x->at++ & (BENCH_STATES - 1);
    memcpy(x->data->qpos, x->q + s * (unsigned)x->model->nq, 8 * (size_t)x->model->nq);
    memcpy(x->data->qvel, x->v + s * (unsigned)x->model->nv, 8 * (size_t)x->model->nv);
}
void mujoco_step(void *context, int repetitions)
{
    Peer *x = context;
    for (int i = 0; i < repetitions; ++i) {
        set(x);
        mj_step(x->model, x->data);
    }
}
/* accelerations with the torques of the next state applied, to check before timing */
void mujoco_answer(void *context, double *out)
{
    Peer *x = context;
    const unsigned s = x->at & (BENCH_STATES - 1);
    set(x);
    memcpy(x->data->qfrc_applied, x->tau + s * (unsigned)x->model->nv, 8 * (size_t)x->model->nv);
    mj_forward(x->model, x->data);
    memcpy(out, x->data->qacc, 8 * (size_t)x->model->nv);
    memset(x->data->qfrc_applied, 0, 8 * (size_t)x->model->nv);
}
