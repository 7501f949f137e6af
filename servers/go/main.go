// The post's dynamic answer, and "Hello, world" in the experiments that ask for it,
// by net/http.
package main

import (
	"encoding/xml"
	"flag"
	"log"
	"net/http"
	"strconv"
	"strings"

	"deathmatch.invalid/listening"
)

func dynamic(w http.ResponseWriter, r *http.Request) {
	var body strings.Builder
	if value := r.URL.Query().Get("value"); value == "" {
		body.WriteString("<http_test><error>no value specified</error></http_test>")
	} else {
		body.WriteString("<http_test><value>")
		xml.EscapeText(&body, []byte(value))
		body.WriteString("</value></http_test>")
	}
	answer(w, "text/xml", body.String())
}

func hello(w http.ResponseWriter, _ *http.Request) {
	answer(w, "text/plain", "Hello, world")
}

// Without a length, net/http sends an answer over 2 KB in chunks.
func answer(w http.ResponseWriter, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write([]byte(body))
}

func main() {
	experiment := flag.String("experiment", "dynamic", "whose answers to give")
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	backlog := flag.Int("backlog", 128, "listen backlog in connections")
	flag.Parse()

	listener, err := listening.TCP(*address, *backlog)
	if err != nil {
		log.Fatal(err)
	}
	handler := hello
	if *experiment == "dynamic" {
		handler = dynamic
	}
	log.Fatal(http.Serve(listener, http.HandlerFunc(handler)))
}
