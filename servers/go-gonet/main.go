// A WebSocket echo by golang.org/x/net/websocket: a goroutine for each connection.
package main

import (
	"bytes"
	"flag"
	"io"
	"log"
	"net/http"

	"deathmatch.invalid/listening"
	"golang.org/x/net/websocket"
)

const finalFrame = 0x80

// The package's Codec hands over single frames and hides which of them ends a message.
func echo(ws *websocket.Conn) {
	defer ws.Close()
	var message bytes.Buffer
	for {
		frame, err := ws.NewFrameReader()
		if err != nil {
			return
		}
		var header [1]byte
		if _, err := io.ReadFull(frame.HeaderReader(), header[:]); err != nil {
			return
		}
		// It answers a ping and returns no frame; a close or an unmasked frame is an error.
		frame, err = ws.HandleFrame(frame)
		if err != nil {
			return
		}
		if frame == nil {
			continue
		}
		if _, err := message.ReadFrom(frame); err != nil {
			return
		}
		if header[0]&finalFrame == 0 {
			continue
		}
		ws.PayloadType = frame.PayloadType()
		if _, err := ws.Write(message.Bytes()); err != nil {
			return
		}
		message.Reset()
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
	log.Fatal(http.Serve(listener, websocket.Server{Handler: echo}))
}
