/* Non-blocking datagram input and output by file descriptor: many datagrams per system call, no allocation.
 *
 * A CAN frame is always the 16 bytes of `struct can_frame` (linux/can.h), whatever carries it: an AF_CAN raw socket, one end of an
 * AF_UNIX SEQPACKET pair, or a UDP socket on the loopback. One code path for all three.
 */
#ifndef DRIVERS_FRAME_IO_H
#define DRIVERS_FRAME_IO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/can.h>
#include <linux/can/error.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "rt_kernels/doors.h"

#define IO_BATCH 32

static inline int64_t io_clock_ns(clockid_t clock)
{
    struct timespec t;
    if (IN_A_WORLD)
        return hil_doors->clock_ns(clock == CLOCK_REALTIME);
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline int64_t io_now_ns(void) { return io_clock_ns(CLOCK_MONOTONIC); }
static inline int64_t io_wall_ns(void) { return io_clock_ns(CLOCK_REALTIME); }

/* Big-endian fields of a wire record. */
static inline uint16_t io_load_be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t io_load_be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static inline void io_store_be16(uint8_t *p, uint16_t v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; }
static inline void io_store_be32(uint8_t *p, uint32_t v) { io_store_be16(p, (uint16_t)(v >> 16)); io_store_be16(p + 2, (uint16_t)v); }

/* Little-endian fields of a CANopen frame. */
static inline uint16_t io_load_le16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t io_load_le32(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }
static inline void io_store_le16(uint8_t *p, uint16_t v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }
static inline void io_store_le32(uint8_t *p, uint32_t v) { io_store_le16(p, (uint16_t)v); io_store_le16(p + 2, (uint16_t)(v >> 16)); }

/* The same three on the wires of a world. */
static inline int io_send_frames_inside(int fd, const struct can_frame *frames, int count, const struct sockaddr_in *peer, int *error)
{
    int i;
    for (i = 0; i < count; i++) {
        const int sent = hil_doors->send(fd, frames + i, sizeof frames[i], peer);
        if (sent < 0) {
            *error = i ? EAGAIN : -sent;
            return i;
        }
    }
    return count;
}
static inline int io_receive_frames_inside(int fd, struct can_frame *frames, int64_t *came_ns, int64_t *bad, struct sockaddr_in *peer,
                                           int *more, int *error)
{
    int taken, kept = 0;
    for (taken = 0; taken < IO_BATCH; taken++) {
        int64_t came;
        const int size = hil_doors->receive(fd, frames + kept, sizeof frames[0], peer, &came);
        if (size < 0) {
            *error = size == -EAGAIN ? 0 : -size;
            break;
        }
        if (size != sizeof frames[0] || frames[kept].can_dlc > 8) {
            ++*bad;
            continue;
        }
        if (came_ns)
            came_ns[kept] = came;
        kept++;
    }
    *more = taken == IO_BATCH;
    return kept;
}
static inline int io_receive_datagrams_inside(int fd, uint8_t *buffer, int stride, int count, int *length, int64_t *came_ns, int *error)
{
    int i;
    for (i = 0; i < count; i++) {
        const int size = hil_doors->receive(fd, buffer + (size_t)i * (size_t)stride, stride, NULL, came_ns + i);
        if (size < 0) {
            *error = size == -EAGAIN ? 0 : -size;
            break;
        }
        length[i] = size > stride ? -1 : size;
    }
    return i;
}

/* Sends `count` (at most IO_BATCH) frames, to `peer` or where the socket is connected to. Returns how many left; `*error` is 0 or errno. */
static inline int io_send_frames(int fd, const struct can_frame *frames, int count, const struct sockaddr_in *peer, int *error)
{
    struct mmsghdr messages[IO_BATCH];
    struct iovec parts[IO_BATCH];
    int i, sent;
    *error = 0;
    if (count > IO_BATCH)
        count = IO_BATCH;
    if (IN_A_WORLD)
        return io_send_frames_inside(fd, frames, count, peer, error);
    memset(messages, 0, sizeof messages[0] * (size_t)count);
    for (i = 0; i < count; i++) {
        parts[i].iov_base = (void *)(frames + i);
        parts[i].iov_len = sizeof frames[i];
        messages[i].msg_hdr.msg_iov = parts + i;
        messages[i].msg_hdr.msg_iovlen = 1;
        if (peer) {
            messages[i].msg_hdr.msg_name = (void *)peer;
            messages[i].msg_hdr.msg_namelen = sizeof *peer;
        }
    }
    sent = sendmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
        *error = errno;
        return 0;
    }
    if (sent < count)
        *error = EAGAIN;
    return sent;
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC: the reading of three during which the least time passed, so that a thread that is held up between two
 * clocks does not shift what is computed with them. */
static inline int64_t io_wall_ahead_ns(void)
{
    int64_t least = INT64_MAX, ahead = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t before = io_now_ns(), wall = io_wall_ns(), passed = io_now_ns() - before;
        if (passed < least) {
            least = passed;
            ahead = wall - before - passed / 2;
        }
    }
    return ahead;
}

/* How long a message had waited in the kernel (SO_TIMESTAMPNS set on its socket) at the wall time `wall`, 0 when it bears no stamp, or one
 * after that time: the wall clock was set. */
static inline int64_t io_age_ns(struct msghdr *header, int64_t wall)
{
    struct cmsghdr *c;
    for (c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            wall -= (int64_t)t.tv_sec * 1000000000LL + t.tv_nsec;
            return wall > 0 ? wall : 0;
        }
    return 0;
}

/* Takes up to IO_BATCH waiting frames; a datagram that is not one well-formed classic frame is left out and counted in `*bad`.
 * `came_ns[i]` (when not NULL) is when it came into the kernel (CLOCK_MONOTONIC), without a stamp when it was taken. `*peer` becomes the
 * sender of the last one (when not NULL). `*more` is 1 when others may wait. `*error` is 0 or errno (never EAGAIN). */
static inline int io_receive_frames_stamped(int fd, struct can_frame *frames, int64_t *came_ns, int64_t *bad, struct sockaddr_in *peer,
                                            int *more, int *error)
{
    union { char bytes[CMSG_SPACE(sizeof(struct timespec))]; struct cmsghdr align; } control[IO_BATCH];
    int64_t now, ahead;
    struct mmsghdr messages[IO_BATCH];
    struct iovec parts[IO_BATCH];
    struct sockaddr_in senders[IO_BATCH];
    int i, got, kept = 0;
    *more = *error = 0;
    if (IN_A_WORLD)
        return io_receive_frames_inside(fd, frames, came_ns, bad, peer, more, error);
    memset(messages, 0, sizeof messages);
    for (i = 0; i < IO_BATCH; i++) {
        parts[i].iov_base = frames + i;
        parts[i].iov_len = sizeof frames[i];
        messages[i].msg_hdr.msg_iov = parts + i;
        messages[i].msg_hdr.msg_iovlen = 1;
        if (peer) {
            messages[i].msg_hdr.msg_name = senders + i;
            messages[i].msg_hdr.msg_namelen = sizeof senders[i];
        }
        if (came_ns) {
            messages[i].msg_hdr.msg_control = control + i;
            messages[i].msg_hdr.msg_controllen = sizeof control[i];
        }
    }
    got = recvmmsg(fd, messages, IO_BATCH, MSG_DONTWAIT, NULL);
    if (got < 0) {
        *error = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : errno;
        return 0;
    }
    *more = got == IO_BATCH;
    now = came_ns ? io_now_ns() : 0;
    ahead = came_ns ? io_wall_ahead_ns() : 0;
    for (i = 0; i < got; i++) {
        if (messages[i].msg_len != sizeof frames[i] || messages[i].msg_hdr.msg_flags & MSG_TRUNC || frames[i].can_dlc > 8) {
            ++*bad;
            continue;
        }
        if (peer)
            *peer = senders[i];
        if (kept != i)
            frames[kept] = frames[i];
        if (came_ns)
            came_ns[kept] = now - io_age_ns(&messages[i].msg_hdr, now + ahead);
        kept++;
    }
    return kept;
}
static inline int io_receive_frames(int fd, struct can_frame *frames, int64_t *bad, struct sockaddr_in *peer, int *more, int *error)
{
    return io_receive_frames_stamped(fd, frames, NULL, bad, peer, more, error);
}

/* Takes up to `count` (at most IO_BATCH) datagrams into `buffer`, one each `stride` bytes. `length[i]` is its length, -1 when it did not fit;
 * `came_ns[i]` is when it came into the kernel (SO_TIMESTAMPNS set on the socket; CLOCK_MONOTONIC, never after now), without a stamp when it
 * was taken. */
static inline int io_receive_datagrams(int fd, uint8_t *buffer, int stride, int count, int *length, int64_t *came_ns, int *error)
{
    struct mmsghdr messages[IO_BATCH];
    struct iovec parts[IO_BATCH];
    union { char bytes[CMSG_SPACE(sizeof(struct timespec))]; struct cmsghdr align; } control[IO_BATCH];
    int i, got;
    int64_t now, ahead;
    *error = 0;
    if (count > IO_BATCH)
        count = IO_BATCH;
    if (IN_A_WORLD)
        return io_receive_datagrams_inside(fd, buffer, stride, count, length, came_ns, error);
    memset(messages, 0, sizeof messages[0] * (size_t)count);
    for (i = 0; i < count; i++) {
        parts[i].iov_base = buffer + (size_t)i * (size_t)stride;
        parts[i].iov_len = (size_t)stride;
        messages[i].msg_hdr.msg_iov = parts + i;
        messages[i].msg_hdr.msg_iovlen = 1;
        messages[i].msg_hdr.msg_control = control + i;
        messages[i].msg_hdr.msg_controllen = sizeof control[i];
    }
    got = recvmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT, NULL);
    if (got < 0) {
        *error = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : errno;
        return 0;
    }
    now = io_now_ns();
    ahead = io_wall_ahead_ns();
    for (i = 0; i < got; i++) {
        length[i] = messages[i].msg_hdr.msg_flags & MSG_TRUNC ? -1 : (int)messages[i].msg_len;
        came_ns[i] = now - io_age_ns(&messages[i].msg_hdr, now + ahead);
    }
    return got;
}

/* One datagram with its sender, and one to a known receiver. */
static inline int io_receive_from(int fd, uint8_t *buffer, int size, struct sockaddr_in *peer)
{
    socklen_t length = sizeof *peer;
    int64_t came;
    if (IN_A_WORLD)
        return hil_doors->receive(fd, buffer, size, peer, &came);
    return (int)recvfrom(fd, buffer, (size_t)size, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)peer, &length);
}
static inline int io_send_to(int fd, const uint8_t *buffer, int size, const struct sockaddr_in *peer)
{
    if (IN_A_WORLD)
        return hil_doors->send(fd, buffer, size, peer);
    return (int)sendto(fd, buffer, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)peer, sizeof *peer);
}
static inline int io_send(int fd, const uint8_t *buffer, int size)
{
    if (IN_A_WORLD)
        return hil_doors->send(fd, buffer, size, NULL);
    return (int)send(fd, buffer, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Waits until one of the descriptors can be read, or the time has passed. */
static inline int io_wait_readable(struct pollfd *fds, int count, int64_t timeout_ns)
{
    struct timespec t;
    if (IN_A_WORLD)
        return hil_doors->wait_readable(fds, count, timeout_ns);
    if (timeout_ns < 0)
        timeout_ns = 0;
    t.tv_sec = timeout_ns / 1000000000LL;
    t.tv_nsec = timeout_ns % 1000000000LL;
    return ppoll(fds, (nfds_t)count, &t, NULL);
}

/* The calling thread's policy and core; both return 0 or an error number. Negative arguments leave things as they are. */
static inline int io_set_fifo(int priority)
{
    struct sched_param p;
    memset(&p, 0, sizeof p);
    p.sched_priority = priority;
    if (IN_A_WORLD)
        return priority <= 0 ? 0 : EPERM;
    return priority <= 0 ? 0 : pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
}
static inline int io_set_core(int core)
{
    cpu_set_t set;
    if (core < 0 || IN_A_WORLD)
        return 0;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

#endif
