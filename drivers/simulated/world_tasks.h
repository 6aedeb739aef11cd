/* A world: virtual time, tasks of which one runs at a time, wires in memory, and what goes wrong on them, all of one seed.
 *
 * A task is a thread of the process that holds the baton or waits for it. Who waits (for a time, a wire, a word) hands the baton to the
 * task that is due next, and time jumps to when it is. Tasks that are due at the same instant come in an order that the seed decides.
 * Reading the clock takes READING_NS, so that who waits for the clock alone comes to an end. Only the task that has the baton touches
 * what is in here.
 */
#ifndef WORLD_TASKS_H
#define WORLD_TASKS_H

#include <poll.h>
#include <stdint.h>

enum {
    WORLD_FIRST_FD = 1 << 20,   /* descriptors of a world: no real one is as high */
    WORLD_TASKS = 64,
    WORLD_SOCKETS = 128,
    WORLD_EVENTS = 256,
    WORLD_WATCHED = 8,          /* most descriptors that a task waits for */
    WORLD_AXES = 6,
    READING_NS = 50
};

/* what an event does */
enum {
    EVENT_LOSS = 1,             /* of wires */
    EVENT_DELAY,                /* by `amount` ns */
    EVENT_REPEAT,               /* again after `amount` ns */
    EVENT_REORDER,              /* by up to `amount` ns, each message for itself */
    EVENT_TRUNCATE,             /* to `amount` bytes at most, a draw of them */
    EVENT_CORRUPT,              /* one bit */
    EVENT_STALL,                /* of a task: for `amount` ns, once */
    EVENT_KINDS
};

typedef struct {
    int64_t from_ns, until_ns;  /* of world time since the events were armed */
    double share;               /* of messages, 0...1 */
    int64_t amount;
    int64_t happened;           /* how often it did something */
    int32_t kind;
    int32_t wire;               /* number of the wire, or role of the task; -1: any */
    int32_t direction;          /* 0 to the device, 1 from it, -1 both */
    int32_t done;
} WorldEvent;

typedef struct {
    int64_t at_ns;
    int32_t task, from;
} WorldTurn;

typedef struct {
    int64_t at_ns;
    uint32_t id;
    uint8_t wire, length, heard;                /* heard: 1 by the server, 0 said by it */
    int8_t role;                                /* of the task that says or hears it */
    uint8_t data[8];
} WorldFrame;                                   /* a CAN frame as the server says or hears it; of an EtherCAT frame the six of its axes */

typedef struct {
    int32_t image, counter;                     /* bytes of the process data, which an EtherCAT frame has first; their working counter */
    int32_t out[WORLD_AXES], in[WORLD_AXES];    /* places in them: control and status word, each with a position behind it */
} WorldAxes;

void world_begin(uint64_t seed, int64_t start_ns);
void world_end(void);
void world_aside(int aside);                /* the caller keeps the baton and has the operating system behind the doors, or no longer */
int64_t world_now(void);                    /* without taking time */
int64_t world_clock_ns(int wall);           /* as a reading of the clock */
void world_step_wall(int64_t by_ns);

int world_new_task(int role);               /* due at once; role: what events name it by; -1: no room */
void world_enter(int task);                 /* on its thread, first: waits for the baton */
void world_leave(void);                     /* last */
int world_current(void);
int world_task_ended(int task);
void world_kill(int task);                  /* its next waits return at once */
int world_killed(void);                     /* whether the caller was */
int world_stuck(void);                      /* whether nobody was ever due again */
void world_set_limit(int64_t until_ns);     /* waits beyond it kill whoever waits */

int world_wait(int64_t due_ns, int64_t key);    /* 1: woken, 0: it is time, -1: killed */
void world_wake(int64_t key);

int world_socket(void);                     /* a descriptor, or -1 */
int world_bind(int fd, int port);           /* the port, 0: any; or -errno */
int world_connect(int fd, int port);
int world_port(int fd);
void world_pair(int fd, int other);
void world_close(int fd);
int world_open_sockets(void);
void world_label(int fd, int wire, int direction);  /* what is sent on this descriptor goes by that wire */
void world_raw(int fd, int wire, int direction);    /* on that wire, which takes what it sends to all raw sockets of the other direction */
void world_take_above(int fd, int place, int least);
void world_watch_axes(const WorldAxes *axes);
int world_send(int fd, const void *data, int size, int port);
int world_waiting(int fd);                  /* bytes of the message that comes next, or -errno */
int world_receive(int fd, void *data, int size, int *port, int64_t *came_ns);
int world_wait_readable(struct pollfd *fds, int count, int64_t timeout_ns);

int world_add_event(const WorldEvent *event);       /* its number, -1: no room */
void world_arm(void);                       /* the events' time begins */
int64_t world_event_happened(int number);
void world_keep_turns(WorldTurn *turns, int64_t room);
int64_t world_turns(void);
void world_keep_frames(WorldFrame *frames, int64_t room);
int64_t world_frames(void);
int64_t world_armed(void);                  /* world time at which the events' time began, -1: not yet */

#endif
