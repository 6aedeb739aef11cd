/* The doors through which everything compiled asks its surroundings: the clock, waiting, wires, another thread's word.
 *
 * Behind them is the operating system (`hil_doors` is NULL: one predicted branch), or a world in which time, wires and threads obey one
 * seed (drivers/simulated/world.pyx). Python's side of the same doors is rt_kernels/doors.py. The pointer is one for the whole process,
 * whichever extension module defined it first: a symbol of that kind (STB_GNU_UNIQUE) is bound so even between modules that Python loads
 * each for itself.
 */
#ifndef RT_KERNELS_DOORS_H
#define RT_KERNELS_DOORS_H

#include <stdint.h>

struct pollfd;
struct sockaddr_in;

typedef struct {
    int64_t (*clock_ns)(int wall);                                  /* CLOCK_MONOTONIC, or CLOCK_REALTIME */
    void (*sleep_until)(int64_t when);                              /* of CLOCK_MONOTONIC */
    int (*wait_readable)(struct pollfd *fds, int count, int64_t timeout_ns);
    int (*send)(int fd, const void *data, int size, const struct sockaddr_in *peer);                /* bytes, or -errno */
    int (*receive)(int fd, void *data, int size, struct sockaddr_in *peer, int64_t *came_ns);       /* bytes of it, or -errno */
    void (*sleep_while)(int32_t *word, int32_t same);
    void (*wake)(int32_t *word);
} Doors;

__attribute__((weak, visibility("default"))) const Doors *hil_doors;
__asm__(".type hil_doors, %gnu_unique_object");

#define IN_A_WORLD __builtin_expect(hil_doors != 0, 0)

#endif
