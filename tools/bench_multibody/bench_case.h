/* What a timed case is to the harness, and a body as the peers read it. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H
#ifdef __cplusplus
extern "C" {
#endif
#define BENCH_STATES 32 /* every case walks through these states; a power of two */

/* joint z axis in its own frame; parent -1: the inertial frame; free_base: six coordinates instead of one */
typedef struct { int parent, free_base; double R[9], p[3], mass, com[3], inertia[6]; } BenchBody;
typedef void (*bench_run_fn)(void *context, int repetitions);
#ifdef __cplusplus
}
#endif
#endif
