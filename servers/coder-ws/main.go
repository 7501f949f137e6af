// A WebSocket echo by github.com/coder/websocket: a goroutine for each connection.
package main

import (
	"flag"
	"log"
	"net/http"

	"deathmatch.invalid/listening"
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

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	backlog := flag.Int("backlog", 4096, "listen backlog in connections")
	flag.Parse()

	listener, err := listening.TCP(*address, *backlog)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, http.HandlerFunc(echo)))
}
