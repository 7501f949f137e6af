;; Sends every WebSocket message back: echo HOST PORT BACKLOG
(ns echo
  (:require
   [aleph.http :as http]
   [aleph.netty :as netty]
   [manifold.deferred :as d]
   [manifold.stream :as s])
  (:import
   (io.netty.bootstrap ServerBootstrap)
   (io.netty.channel ChannelOption)
   (java.net InetSocketAddress)))

(def longest-message (bit-shift-left 1 20))

(defn echo [request]
  (-> (http/websocket-connection request {:max-frame-payload longest-message
                                          :handshake-timeout (* 60 60 1000)})
      (d/chain (fn [socket]
                 (s/connect socket socket)
                 nil))
      (d/catch (fn [_]
                 {:status 426 :headers {"upgrade" "websocket"} :body "WebSocket only\n"}))))

(defn -main [host port backlog]
  (netty/wait-for-close
   (http/start-server
    echo
    {:socket-address (InetSocketAddress. ^String host (int (parse-long port)))
     :bootstrap-transform (fn [^ServerBootstrap bootstrap]
                            (.option bootstrap ChannelOption/SO_BACKLOG
                                     (int (parse-long backlog))))})))
