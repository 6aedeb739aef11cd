/* See modal_block.h. Vector types of the compiler, no intrinsics: the base variant does the same four lanes as two halves. */
#include "modal_block.h"

#include <stddef.h>
#include <string.h>

typedef double lanes __attribute__((vector_size(8 * MODAL_LANES)));

#define BROADCAST(x) ((lanes){(x), (x), (x), (x)})
#define SUM(a) (((a)[0] + (a)[1]) + ((a)[2] + (a)[3]))

#define PASS_NAME pass_base
#define PASS_TARGET
#include "modal_pass.inc"

#if defined(__x86_64__)
#define PASS_NAME pass_avx2
#define PASS_TARGET __attribute__((target("avx2")))
#include "modal_pass.inc"

/* the same four lanes with thirty-two registers: the twelve sums and the six loads all stay in them */
#define PASS_NAME pass_avx512
#define PASS_TARGET __attribute__((target("avx512f,avx512vl,prefer-vector-width=256")))
#include "modal_pass.inc"
#endif

modal_pass_function modal_pass(const char *name)
{
#if defined(__x86_64__)
    int has_avx2 = __builtin_cpu_supports("avx2");
    int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    if (has_avx512 && (strcmp(name, "avx512") == 0 || strcmp(name, "auto") == 0))
        return pass_avx512;
    if (has_avx2 && (strcmp(name, "avx2") == 0 || strcmp(name, "auto") == 0))
        return pass_avx2;
#endif
    if (strcmp(name, "base") == 0 || strcmp(name, "auto") == 0)
        return pass_base;
    return NULL;
}
