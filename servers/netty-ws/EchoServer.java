import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.websocketx.WebSocketFrame;
import io.netty.handler.codec.http.websocketx.WebSocketFrameAggregator;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolConfig;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolHandler;
import java.util.concurrent.TimeUnit;

/**
 * Sends every WebSocket message back.
 *
 * <p>EchoServer HOST PORT BACKLOG WORKERS
 */
public final class EchoServer {
  private static final int LONGEST_REQUEST = 16384;
  private static final int LONGEST_MESSAGE = 1 << 20;

  private static final WebSocketServerProtocolConfig CONFIG =
      WebSocketServerProtocolConfig.newBuilder()
          .websocketPath("/")
          .maxFramePayloadLength(LONGEST_MESSAGE)
          .handshakeTimeoutMillis(TimeUnit.HOURS.toMillis(1))
          .build();

  /** Pings and closes have been answered before they would get here. */
  private static final class Echo extends SimpleChannelInboundHandler<WebSocketFrame> {
    @Override
    protected void channelRead0(ChannelHandlerContext context, WebSocketFrame message) {
      context.write(message.retain());
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      context.flush();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      context.close();
    }
  }

  public static void main(String[] arguments) throws Exception {
    String host = arguments[0];
    int port = Integer.parseInt(arguments[1]);
    int backlog = Integer.parseInt(arguments[2]);
    int workers = Integer.parseInt(arguments[3]);

    // One group accepts and serves, so that one worker is one thread.
    var loops = new MultiThreadIoEventLoopGroup(workers, NioIoHandler.newFactory());
    new ServerBootstrap()
        .group(loops)
        .channel(NioServerSocketChannel.class)
        .option(ChannelOption.SO_BACKLOG, backlog)
        .childHandler(
            new ChannelInitializer<SocketChannel>() {
              @Override
              protected void initChannel(SocketChannel channel) {
                channel
                    .pipeline()
                    .addLast(new HttpServerCodec())
                    .addLast(new HttpObjectAggregator(LONGEST_REQUEST))
                    .addLast(new WebSocketServerProtocolHandler(CONFIG))
                    .addLast(new WebSocketFrameAggregator(LONGEST_MESSAGE))
                    .addLast(new Echo());
              }
            })
        .bind(host, port)
        .sync()
        .channel()
        .closeFuture()
        .sync();
  }
}
