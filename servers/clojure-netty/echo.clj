;; Sends every WebSocket message back: echo HOST PORT BACKLOG WORKERS
(ns echo
  (:gen-class)
  (:import
   (io.netty.bootstrap ServerBootstrap)
   (io.netty.channel ChannelHandler ChannelHandlerContext ChannelInboundHandlerAdapter
                     ChannelInitializer ChannelOption MultiThreadIoEventLoopGroup)
   (io.netty.channel.nio NioIoHandler)
   (io.netty.channel.socket SocketChannel)
   (io.netty.channel.socket.nio NioServerSocketChannel)
   (io.netty.handler.codec.http HttpObjectAggregator HttpServerCodec)
   (io.netty.handler.codec.http.websocketx WebSocketFrame WebSocketFrameAggregator
                                           WebSocketServerProtocolConfig
                                           WebSocketServerProtocolHandler)
   (io.netty.util ReferenceCountUtil)))

(set! *warn-on-reflection* true)

(def longest-request 16384)
(def longest-message (bit-shift-left 1 20))

(def ^WebSocketServerProtocolConfig config
  (-> (WebSocketServerProtocolConfig/newBuilder)
      (.websocketPath "/")
      (.maxFramePayloadLength longest-message)
      (.handshakeTimeoutMillis (* 60 60 1000))
      .build))

;; Pings and closes have been answered before they would get here.
(defn echo-handler ^ChannelHandler []
  (proxy [ChannelInboundHandlerAdapter] []
    (channelRead [^ChannelHandlerContext context message]
      (if (instance? WebSocketFrame message)
        (.write context message)
        (ReferenceCountUtil/release message)))
    (channelReadComplete [^ChannelHandlerContext context]
      (.flush context))
    (exceptionCaught [^ChannelHandlerContext context _]
      (.close context))))

(defn pipeline ^ChannelInitializer []
  (proxy [ChannelInitializer] []
    (initChannel [^SocketChannel channel]
      (let [^"[Lio.netty.channel.ChannelHandler;" handlers
            (into-array ChannelHandler
                        [(HttpServerCodec.)
                         (HttpObjectAggregator. (int longest-request))
                         (WebSocketServerProtocolHandler. config)
                         (WebSocketFrameAggregator. (int longest-message))
                         (echo-handler)])]
        (.addLast (.pipeline channel) handlers)))))

;; Returns when the listening socket is closed.
(defn -main [host port backlog workers]
  ;; One group accepts and serves, so that one worker is one thread.
  (let [loops (MultiThreadIoEventLoopGroup. (parse-long workers) (NioIoHandler/newFactory))
        bootstrap (doto (ServerBootstrap.)
                    (.group loops)
                    (.channel NioServerSocketChannel)
                    (.option ChannelOption/SO_BACKLOG (int (parse-long backlog)))
                    (.childHandler (pipeline)))
        listener (.. bootstrap (bind ^String host (int (parse-long port))) sync channel)]
    (.. listener closeFuture sync)))
