// A WebSocket echo by uWebSockets: one event loop.
// uws-echo HOST PORT
#include "App.h"

#include <cstdlib>
#include <iostream>

struct Nothing {};

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::cerr << "usage: uws-echo HOST PORT\n";
        return 2;
    }
    bool listens = false;
    uWS::App()
        .ws<Nothing>("/*",
                     {.compression = uWS::DISABLED,
                      .maxPayloadLength = 16 * 1024 * 1024,
                      .idleTimeout = 0,
                      .maxBackpressure = 64 * 1024 * 1024,
                      .message = [](auto *socket, std::string_view message,
                                    uWS::OpCode opCode) { socket->send(message, opCode); }})
        .listen(argv[1], std::atoi(argv[2]), [&](auto *socket) { listens = socket; })
        .run();
    return listens ? 0 : 1;
}
