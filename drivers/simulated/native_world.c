#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "drivers/simulated/world_tasks.h"

#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rt_kernels/doors.h"

#define NEVER INT64_MAX
#define WALL_AHEAD_NS 1700000000000000000LL     /* time of day at the monotonic clock's zero */
#define WIRE_NS 20000                           /* from one end of a wire to the other */
#define GATHER_NS 20000                         /* messages come in at multiples of it: a card gathers its interrupts */
#define MOST_WAITING 65536                      /* messages in a socket */
#define MOST_RAW 256                            /* frames in a raw one */
#define IMAGE 26                                /* of an EtherCAT frame: data of its first datagram */
#define COMMAND_LRW 12
#define TO_BRD (2 + 20 + 10)                    /* from its working counter to the AL status of all slaves, behind the reference time */

typedef struct Message {
    struct Message *next;
    int64_t sent_ns, due_ns;
    int32_t size, port;
    uint8_t data[];
} Message;

typedef struct {
    int32_t used, bound, connected, pair, wire, direction, waiting;
    int32_t raw, place, least;                  /* raw: takes frames whose byte at `place` is at least this */
    Message *first;
} Socket;

typedef struct {
    int32_t used, ended, killed, woken, role;
    int32_t baton;                              /* futex: 1 once it has it */
    int32_t watched[WORLD_WATCHED], watching;
    int64_t due_ns, key;
    uint64_t draw;                              /* orders those that are due together */
} Task;

static struct {
    uint64_t seed, draws;
    cpu_set_t cores;                            /* of the process before the world */
    int64_t now, wall_ahead, limit, armed_ns;
    int32_t running, stuck, next_port, events, any_stall;
    Task task[WORLD_TASKS];
    int32_t tasks;
    Socket socket[WORLD_SOCKETS];
    WorldEvent event[WORLD_EVENTS];
    uint64_t seen[WORLD_EVENTS];                /* messages that an event has looked at: its own draws, whatever other events there are */
    WorldTurn *turn;
    int64_t turn_room, turn_count;
    WorldFrame *frame;
    int64_t frame_room, frame_count;
    WorldAxes axes;
    int32_t axes_index;                         /* of the newest EtherCAT frame that was said */
    int64_t axes_answered_ns;                   /* when the segment sent the newest answer that was heard */
} w;
static __thread int me = -1;

/* splitmix64 */
static uint64_t mixed(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
    return x ^ x >> 31;
}
static double drawn(int number, int which)
{
    return (double)(mixed(w.seed ^ mixed((uint64_t)number << 48 ^ w.seen[number] << 3 ^ (uint64_t)which)) >> 11) * 0x1p-53;
}

/* ---------------------------------------------------------------------------------------------------------------- tasks */

static void stalls(int task)
{
    int i;
    for (i = 0; i < w.events; i++) {
        WorldEvent *e = &w.event[i];
        if (e->kind == EVENT_STALL && !e->done && e->wire == w.task[task].role && w.armed_ns >= 0 && w.task[task].due_ns != NEVER
            && w.task[task].due_ns - w.armed_ns >= e->from_ns) {
            e->done = 1;
            e->happened++;
            w.task[task].due_ns += e->amount;
        }
    }
}

static int next_task(void)
{
    for (;;) {
        int i, best = -1;
        for (i = 0; i < w.tasks; i++) {
            const Task *t = &w.task[i];
            if (!t->used || t->ended || t->due_ns == NEVER)
                continue;
            if (best < 0 || t->due_ns < w.task[best].due_ns || (t->due_ns == w.task[best].due_ns && t->draw < w.task[best].draw))
                best = i;
        }
        if (best < 0 || !w.any_stall)
            return best;
        const int64_t before = w.task[best].due_ns;
        stalls(best);
        if (w.task[best].due_ns == before)
            return best;
    }
}

static void await_baton(int task)
{
    int32_t *baton = &w.task[task].baton;
    while (!__atomic_load_n(baton, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, baton, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    __atomic_store_n(baton, 0, __ATOMIC_RELAXED);
}

/* The baton to who is due next. Without anybody the first task gets it, and learns that the world is stuck. */
static void hand_over(int stays)
{
    int next = next_task();
    if (next < 0) {
        w.stuck = 1;
        for (next = 0; next < w.tasks - 1 && (!w.task[next].used || w.task[next].ended); next++) { }
        w.task[next].killed = 1;
        w.task[next].due_ns = w.now;
    }
    if (w.task[next].due_ns > w.now)
        w.now = w.task[next].due_ns;
    if (w.now > w.limit && !w.task[next].killed)
        w.task[next].killed = 1;
    if (next != w.running && w.turn_count < w.turn_room) {
        w.turn[w.turn_count].at_ns = w.now;
        w.turn[w.turn_count].from = w.running;
        w.turn[w.turn_count++].task = next;
    }
    w.running = next;
    w.task[next].watching = 0;
    if (next == me)
        return;
    __atomic_store_n(&w.task[next].baton, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &w.task[next].baton, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (stays)
        await_baton(me);
}

static void due_at(Task *t, int64_t due_ns)
{
    t->due_ns = due_ns;
    t->draw = mixed(w.seed ^ mixed(++w.draws));
}

int world_new_task(int role)
{
    Task *t;
    if (w.tasks == WORLD_TASKS)
        return -1;
    t = &w.task[w.tasks];
    memset(t, 0, sizeof *t);
    t->used = 1;
    t->role = role;
    due_at(t, w.now);
    return w.tasks++;
}

void world_enter(int task)
{
    me = task;
    await_baton(task);
}

void world_leave(void)
{
    w.task[me].ended = 1;
    world_wake(-1 - me);
    hand_over(0);
    me = -1;
}

int world_current(void) { return me; }
int world_task_ended(int task) { return w.task[task].ended; }
void world_kill(int task)
{
    w.task[task].killed = 1;
    if (!w.task[task].ended && w.task[task].due_ns > w.now)
        due_at(&w.task[task], w.now);
}
int world_killed(void) { return me >= 0 && w.task[me].killed; }
int world_stuck(void) { return w.stuck; }
void world_set_limit(int64_t until_ns) { w.limit = until_ns; }

int world_wait(int64_t due_ns, int64_t key)
{
    Task *t = &w.task[me];
    if (t->killed)
        return -1;
    t->woken = 0;
    t->key = key;
    due_at(t, due_ns);
    hand_over(1);
    t->key = 0;
    return t->killed ? -1 : t->woken;
}

void world_wake(int64_t key)
{
    int i;
    for (i = 0; i < w.tasks; i++)
        if (w.task[i].used && !w.task[i].ended && i != w.running && w.task[i].key == key && !w.task[i].woken) {
            w.task[i].woken = 1;
            due_at(&w.task[i], w.now);
        }
}

/* ---------------------------------------------------------------------------------------------------------------- wires */

static Socket *socket_of(int fd)
{
    Socket *s;
    if (fd < WORLD_FIRST_FD || fd >= WORLD_FIRST_FD + WORLD_SOCKETS)
        return NULL;
    s = &w.socket[fd - WORLD_FIRST_FD];
    return s->used ? s : NULL;
}

int world_socket(void)
{
    int i;
    for (i = 0; i < WORLD_SOCKETS; i++)
        if (!w.socket[i].used) {
            memset(&w.socket[i], 0, sizeof w.socket[i]);
            w.socket[i].used = 1;
            w.socket[i].pair = w.socket[i].wire = -1;
            return WORLD_FIRST_FD + i;
        }
    return -1;
}

static Socket *bound_to(int port)
{
    int i;
    for (i = 0; i < WORLD_SOCKETS; i++)
        if (w.socket[i].used && w.socket[i].bound == port)
            return &w.socket[i];
    return NULL;
}

int world_bind(int fd, int port)
{
    Socket *s = socket_of(fd);
    if (s == NULL)
        return -EBADF;
    if (port && bound_to(port))
        return -EADDRINUSE;
    return s->bound = port ? port : w.next_port++;
}

int world_connect(int fd, int port)
{
    Socket *s = socket_of(fd);
    if (s == NULL)
        return -EBADF;
    s->connected = port;
    return s->bound ? s->bound : world_bind(fd, 0);
}

int world_port(int fd) { return socket_of(fd) ? socket_of(fd)->bound : -EBADF; }

void world_pair(int fd, int other)
{
    socket_of(fd)->pair = other - WORLD_FIRST_FD;
    socket_of(other)->pair = fd - WORLD_FIRST_FD;
}

void world_close(int fd)
{
    Socket *s = socket_of(fd);
    if (s == NULL)
        return;
    while (s->first) {
        Message *gone = s->first;
        s->first = gone->next;
        free(gone);
    }
    if (s->pair >= 0 && w.socket[s->pair].pair == fd - WORLD_FIRST_FD)
        w.socket[s->pair].pair = -2;
    s->used = 0;
}

int world_open_sockets(void)
{
    int i, count = 0;
    for (i = 0; i < WORLD_SOCKETS; i++)
        count += w.socket[i].used;
    return count;
}

void world_label(int fd, int wire, int direction)
{
    socket_of(fd)->wire = wire;
    socket_of(fd)->direction = direction;
}

void world_raw(int fd, int wire, int direction)
{
    world_label(fd, wire, direction);
    socket_of(fd)->raw = 1;
}
void world_take_above(int fd, int place, int least)
{
    socket_of(fd)->place = place;
    socket_of(fd)->least = least;
}
void world_watch_axes(const WorldAxes *axes) { w.axes = *axes; }

static void note(const Socket *s, uint32_t id, const uint8_t *data, int size, int heard)
{
    WorldFrame *f;
    if (w.frame_count >= w.frame_room)
        return;
    f = &w.frame[w.frame_count++];
    f->at_ns = w.now;
    f->id = id;
    f->wire = (uint8_t)s->wire;
    f->length = (uint8_t)size;
    f->heard = (uint8_t)heard;
    f->role = (int8_t)w.task[me].role;
    memcpy(f->data, data, 8);
}

/* What a frame of the process data says to the axes, or, with its whole working counter the answer to the newest, of them. AL status as the
   heartbeats that it stands for: 0x700 of all slaves, with how many have said it, and of the one that was asked. */
static void note_axes(const Socket *s, const uint8_t *data, int size, int heard, int64_t sent_ns)
{
    const uint8_t *counter = data + IMAGE + w.axes.image, *all = counter + TO_BRD, *one = all + 4 + 10;
    int64_t time = 0;
    int i;
    if (!w.axes.image || size < IMAGE + w.axes.image + 2 || data[16] != COMMAND_LRW || (heard && data[17] != w.axes_index))
        return;
    if (heard && one + 8 <= data + size) {
        memcpy(&time, all - 10 - 2 - 8, 8);
        if (time) {                             /* when, damage may have changed */
            if (sent_ns < w.axes_answered_ns)
                return;                         /* of an earlier round of the indices */
            w.axes_answered_ns = sent_ns;
        }
        note(s, 0x700u, all, 4, 1);
        if (one[6] == 1)
            note(s, 0x700u + (one[-8] & 0x7Fu), one, 6, 1);
    }
    if (heard && (counter[0] | counter[1] << 8) != w.axes.counter)
        return;
    w.axes_index = data[17];
    for (i = 0; i < WORLD_AXES; i++)
        note(s, (heard ? 0x180u : 0x200u) + 1u + (uint32_t)i, data + IMAGE + (heard ? w.axes.in[i] : w.axes.out[i]), 6, heard);
}

static void note_frame(const Socket *s, const uint8_t *data, int size, int heard, int64_t sent_ns)
{
    uint32_t id;
    if (s->wire < 0 || s->direction != 0)
        return;
    if (s->raw) {
        note_axes(s, data, size, heard, sent_ns);
    } else if (size == 16) {
        memcpy(&id, data, 4);
        note(s, id, data + 8, data[4], heard);
    }
}

static void put(Socket *to, const void *data, int size, int port, int64_t due_ns)
{
    Message *m, **at = &to->first;
    int i, k, number = (int)(to - w.socket);
    if (to->waiting >= (to->raw ? MOST_RAW : MOST_WAITING) || (m = malloc(sizeof *m + (size_t)size)) == NULL)
        return;
    m->sent_ns = w.now;
    m->due_ns = due_ns;
    m->size = size;
    m->port = port;
    memcpy(m->data, data, (size_t)size);
    while (*at && (*at)->due_ns <= due_ns)
        at = &(*at)->next;
    m->next = *at;
    *at = m;
    to->waiting++;
    for (i = 0; i < w.tasks; i++)
        for (k = 0; k < w.task[i].watching; k++)
            if (w.task[i].watched[k] == number && i != w.running && w.task[i].due_ns > due_ns)
                due_at(&w.task[i], due_ns);
}

/* To the one socket at the other end, or to all raw ones there. */
static void deliver(const Socket *s, Socket *to, const void *data, int size, int64_t due_ns)
{
    int i;
    if (!s->raw) {
        put(to, data, size, s->bound, due_ns);
        return;
    }
    for (i = 0; i < WORLD_SOCKETS; i++) {
        to = &w.socket[i];
        if (to->used && to->raw && to->wire == s->wire && to->direction != s->direction
            && (!to->least || (size > to->place && ((const uint8_t *)data)[to->place] >= to->least)))
            put(to, data, size, 0, due_ns);
    }
}

int world_send(int fd, const void *data, int size, int port)
{
    Socket *s = socket_of(fd), *to = NULL;
    uint8_t copy[65536];
    int64_t due, again = -1;
    int i;
    if (s == NULL)
        return -EBADF;
    if (s->pair == -2)
        return -EPIPE;
    if (s->pair >= 0) {
        put(&w.socket[s->pair], data, size, 0, w.now);
        return size;
    }
    if (size > (int)sizeof copy)
        return -EMSGSIZE;
    note_frame(s, data, size, 0, w.now);
    due = w.now + WIRE_NS;
    if (!s->raw) {
        if (!s->bound)
            world_bind(fd, 0);
        to = bound_to(port ? port : s->connected);
        if (to == NULL || (to->connected && to->connected != s->bound))
            return size;
        due = (due + GATHER_NS - 1) / GATHER_NS * GATHER_NS;
    }
    if (w.events && w.armed_ns >= 0 && s->wire >= 0) {
        const int64_t at = w.now - w.armed_ns;
        const int whole = size;
        for (i = 0; i < w.events; i++) {
            WorldEvent *e = &w.event[i];
            if (e->kind == EVENT_STALL || at < e->from_ns || at >= e->until_ns || (e->wire >= 0 && e->wire != s->wire)
                || (e->direction >= 0 && e->direction != s->direction))
                continue;
            w.seen[i]++;
            if (drawn(i, 0) >= e->share)
                continue;
            e->happened++;
            if (e->kind == EVENT_LOSS)
                return whole;
            if (e->kind == EVENT_DELAY)
                due += e->amount;
            else if (e->kind == EVENT_REPEAT)
                again = e->amount;
            else if (e->kind == EVENT_REORDER)
                due += (int64_t)(drawn(i, 1) * (double)e->amount);
            else if (e->kind == EVENT_TRUNCATE && size > e->amount)
                size = (int)e->amount;
            else if (e->kind == EVENT_CORRUPT && size > 0) {
                if (data != copy) {
                    memcpy(copy, data, (size_t)size);
                    data = copy;
                }
                const int bit = (int)(drawn(i, 1) * 8.0 * size);
                copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
        }
        deliver(s, to, data, size, due);
        if (again >= 0)
            deliver(s, to, data, size, due + again);
        return whole;
    }
    deliver(s, to, data, size, due);
    return size;
}

int world_waiting(int fd)
{
    const Socket *s = socket_of(fd);
    if (s == NULL)
        return -EBADF;
    if (s->first == NULL || s->first->due_ns > w.now)
        return s->pair == -2 && s->first == NULL ? 0 : -EAGAIN;
    return s->first->size;
}

int world_receive(int fd, void *data, int size, int *port, int64_t *came_ns)
{
    Socket *s = socket_of(fd);
    Message *m;
    int whole;
    if (s == NULL)
        return -EBADF;
    m = s->first;
    if (m == NULL || m->due_ns > w.now)
        return s->pair == -2 && m == NULL ? 0 : -EAGAIN;
    s->first = m->next;
    s->waiting--;
    whole = m->size;
    memcpy(data, m->data, (size_t)(whole < size ? whole : size));
    note_frame(s, m->data, whole, 1, m->sent_ns);
    if (port)
        *port = m->port;
    if (came_ns)
        *came_ns = m->due_ns;
    free(m);
    return whole;
}

static int readable(struct pollfd *fds, int count)
{
    int i, found = 0;
    for (i = 0; i < count; i++) {
        const Socket *s = socket_of(fds[i].fd);
        fds[i].revents = s && ((s->first && s->first->due_ns <= w.now) || s->pair == -2) ? POLLIN : 0;
        found += fds[i].revents != 0;
    }
    return found;
}

int world_wait_readable(struct pollfd *fds, int count, int64_t timeout_ns)
{
    Task *t = &w.task[me];
    int64_t due = timeout_ns == NEVER ? NEVER : w.now + (timeout_ns > 0 ? timeout_ns : 0);
    int i, found = readable(fds, count);
    if (found || timeout_ns == 0)
        return found;
    if (t->killed)
        return -1;
    t->woken = 0;
    t->key = 0;
    for (i = 0; i < count && t->watching < WORLD_WATCHED; i++) {
        const Socket *s = socket_of(fds[i].fd);
        if (s == NULL)
            continue;
        t->watched[t->watching++] = fds[i].fd - WORLD_FIRST_FD;
        if (s->first && s->first->due_ns < due)
            due = s->first->due_ns;
    }
    due_at(t, due);
    hand_over(1);
    return t->killed ? -1 : readable(fds, count);
}

/* ---------------------------------------------------------------------------------------------------------------- doors */

int64_t world_now(void) { return w.now; }
void world_step_wall(int64_t by_ns) { w.wall_ahead += by_ns; }

int64_t world_clock_ns(int wall)
{
    w.now += READING_NS;
    return wall ? w.now + w.wall_ahead : w.now;
}

static void sleep_until(int64_t when)
{
    if (me >= 0)
        world_wait(when > w.now ? when : w.now, 0);
}

static int send_to(int fd, const void *data, int size, const struct sockaddr_in *peer)
{
    return world_send(fd, data, size, peer ? ntohs(peer->sin_port) : 0);
}

static int receive_from(int fd, void *data, int size, struct sockaddr_in *peer, int64_t *came_ns)
{
    int port = 0;
    const int got = world_receive(fd, data, size, &port, came_ns);
    if (got >= 0 && peer) {
        memset(peer, 0, sizeof *peer);
        peer->sin_family = AF_INET;
        peer->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        peer->sin_port = htons((uint16_t)port);
    }
    return got;
}

static int64_t key_of(const int32_t *word) { return (int64_t)(intptr_t)word; }
static void sleep_while(int32_t *word, int32_t same)
{
    if (me >= 0 && __atomic_load_n(word, __ATOMIC_ACQUIRE) == same)
        world_wait(NEVER, key_of(word));
}
static void wake(int32_t *word) { world_wake(key_of(word)); }

static const Doors inside = {world_clock_ns, sleep_until, world_wait_readable, send_to, receive_from, sleep_while, wake};

/* Tasks run one at a time: on one core, the one where the world begins, as a hand-over to another one costs a wake-up. Threads begin with
   the cores of the thread that starts them. */
static void stay_on_this_core(void)
{
    cpu_set_t here;
    const int core = sched_getcpu();
    CPU_ZERO(&w.cores);
    if (core < 0 || sched_getaffinity(0, sizeof w.cores, &w.cores) != 0)
        return;
    CPU_ZERO(&here);
    CPU_SET(core, &here);
    sched_setaffinity(0, sizeof here, &here);
}

void world_begin(uint64_t seed, int64_t start_ns)
{
    memset(&w, 0, sizeof w);
    stay_on_this_core();
    w.seed = seed;
    w.now = start_ns;
    w.wall_ahead = WALL_AHEAD_NS;
    w.limit = NEVER;
    w.armed_ns = -1;
    w.next_port = 40000;
    me = world_new_task(0);
    w.running = me;
    hil_doors = &inside;
}

void world_aside(int aside)
{
    hil_doors = aside ? NULL : &inside;
}

void world_end(void)
{
    int i;
    hil_doors = NULL;
    if (CPU_COUNT(&w.cores))
        sched_setaffinity(0, sizeof w.cores, &w.cores);
    for (i = 0; i < WORLD_SOCKETS; i++)
        world_close(WORLD_FIRST_FD + i);
    me = -1;
}

/* --------------------------------------------------------------------------------------------------------------- events */

int world_add_event(const WorldEvent *event)
{
    if (w.events == WORLD_EVENTS)
        return -1;
    w.event[w.events] = *event;
    w.any_stall |= event->kind == EVENT_STALL;
    return w.events++;
}

void world_arm(void) { w.armed_ns = w.now; }
int64_t world_event_happened(int number) { return w.event[number].happened; }
void world_keep_turns(WorldTurn *turns, int64_t room)
{
    w.turn = turns;
    w.turn_room = room;
    w.turn_count = 0;
}
int64_t world_turns(void) { return w.turn_count; }
void world_keep_frames(WorldFrame *frames, int64_t room)
{
    w.frame = frames;
    w.frame_room = room;
    w.frame_count = 0;
}
int64_t world_frames(void) { return w.frame_count; }
int64_t world_armed(void) { return w.armed_ns; }
