// A WebSocket echo by libwebsockets.
// lws-echo HOST PORT BACKLOG MECHANISM, where MECHANISM is epoll (libuv) or poll (its own loop).
#include <libwebsockets.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LONGEST_TIMEOUT_S = 65535 };

struct message {
    struct message *next;
    size_t length;
    bool binary;
    // lws_write puts the frame's header into the first LWS_PRE bytes.
    unsigned char bytes[];
};

struct session {
    struct message *arriving, *first, **end;
};

// Add a part of a message to what has arrived of it.
static bool receive(struct session *session, const void *part, size_t length)
{
    size_t before = session->arriving ? session->arriving->length : 0;
    struct message *message =
        realloc(session->arriving, sizeof *message + LWS_PRE + before + length);
    if (!message)
        return false;
    memcpy(message->bytes + LWS_PRE + before, part, length);
    message->length = before + length;
    message->next = NULL;
    session->arriving = message;
    return true;
}

static int send_first(struct lws *connection, struct session *session)
{
    struct message *message = session->first;
    if (!message)
        return 0;
    session->first = message->next;
    if (!session->first)
        session->end = &session->first;
    int sent = lws_write(connection, message->bytes + LWS_PRE, message->length,
                         message->binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT);
    bool whole = sent >= 0 && (size_t)sent == message->length;
    free(message);
    // The library wants to be asked before each write.
    if (whole && session->first)
        lws_callback_on_writable(connection);
    return whole ? 0 : -1;
}

static int echo(struct lws *connection, enum lws_callback_reasons reason, void *user, void *in,
                size_t length)
{
    struct session *session = user;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        session->arriving = session->first = NULL;
        session->end = &session->first;
        return 0;
    case LWS_CALLBACK_RECEIVE:
        if (!receive(session, in, length))
            return -1;
        if (lws_is_final_fragment(connection)) {
            session->arriving->binary = lws_frame_is_binary(connection);
            *session->end = session->arriving;
            session->end = &session->arriving->next;
            session->arriving = NULL;
            if (!lws_send_pipe_choked(connection))
                return send_first(connection, session);
            lws_callback_on_writable(connection);
        }
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return send_first(connection, session);
    case LWS_CALLBACK_CLOSED:
        free(session->arriving);
        while (session->first) {
            struct message *message = session->first;
            session->first = message->next;
            free(message);
        }
        return 0;
    default:
        return lws_callback_http_dummy(connection, reason, user, in, length);
    }
}

static int wanted_backlog;

// The library listens with SOMAXCONN and has no option for it: its calls of listen(2) come here.
int listen(int fd, int backlog)
{
    (void)backlog;
    return (int)syscall(SYS_listen, fd, wanted_backlog);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: lws-echo HOST PORT BACKLOG MECHANISM\n");
        return 2;
    }
    static const struct lws_protocols protocols[] = {
        {.name = "echo", .callback = echo, .per_session_data_size = sizeof(struct session)},
        {0},
    };
    static const lws_retry_bo_t never = {
        .secs_since_valid_ping = LONGEST_TIMEOUT_S - 1,
        .secs_since_valid_hangup = LONGEST_TIMEOUT_S,
    };
    struct lws_context_creation_info info = {
        .iface = argv[1],
        .port = atoi(argv[2]),
        .protocols = protocols,
        .options = LWS_SERVER_OPTION_DISABLE_IPV6 | LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND,
        .retry_and_idle_policy = &never,
        .timeout_secs = LONGEST_TIMEOUT_S,
        .timeout_secs_ah_idle = LONGEST_TIMEOUT_S,
        .gid = -1,
        .uid = -1,
    };
    if (!strcmp(argv[4], "epoll"))
        info.options |= LWS_SERVER_OPTION_LIBUV;
    lws_set_log_level(LLL_ERR | LLL_WARN, NULL);
    wanted_backlog = atoi(argv[3]);
    struct lws_context *context = lws_create_context(&info);
    if (!context)
        return 1;
    while (lws_service(context, 0) == 0)
        continue;
    lws_context_destroy(context);
}
