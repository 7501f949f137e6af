// A WebSocket echo by github.com/coder/websocket: a goroutine for each connection.
package main

import (
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"syscall"

	"github.com/coder/websocket"
)

func echo(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(-1)
	for {
		kind, message, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		if err := ws.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}

// net listens with the kernel's greatest backlog; Linux lets a second listen(2) change it.
func listen(address string, backlog int) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) })
	return listener, errors.Join(err, failed)
}

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	backlog := flag.Int("backlog", 4096, "listen backlog in connections")
	flag.Parse()

	listener, err := listen(*address, *backlog)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, http.HandlerFunc(echo)))
}
