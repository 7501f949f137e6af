import static io.netty.handler.codec.http.HttpHeaderNames.CONTENT_LENGTH;
import static io.netty.handler.codec.http.HttpHeaderNames.CONTENT_TYPE;
import static io.netty.handler.codec.http.HttpResponseStatus.BAD_REQUEST;
import static io.netty.handler.codec.http.HttpResponseStatus.OK;
import static io.netty.handler.codec.http.HttpVersion.HTTP_1_1;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.util.List;

/**
 * The post's dynamic answer, and "Hello, world" in the experiments that ask for it.
 *
 * <p>HttpServer EXPERIMENT TRANSPORT HOST PORT BACKLOG WORKERS MECHANISM, where MECHANISM is epoll or
 * poll, for the JDK's selectors.
 */
public final class HttpServer {
  private static final int LONGEST_LINE = 16384;
  private static final int LONGEST_HEADERS = 16384;
  private static final int LONGEST_CHUNK = 8192;

  private static final class Handler extends SimpleChannelInboundHandler<HttpObject> {
    private final boolean dynamic;

    Handler(boolean dynamic) {
      this.dynamic = dynamic;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
      if (!(message instanceof HttpRequest request)) {
        return;
      }
      if (request.decoderResult().isFailure()) {
        // The keep-alive handler closes after it.
        answer(context, BAD_REQUEST, "text/plain", "Bad request");
      } else if (dynamic) {
        answer(context, OK, "text/xml", echo(request.uri()));
      } else {
        answer(context, OK, "text/plain", "Hello, world");
      }
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

  private static String echo(String uri) {
    List<String> values = new QueryStringDecoder(uri).parameters().get("value");
    if (values == null || values.get(0).isEmpty()) {
      return "<http_test><error>no value specified</error></http_test>";
    }
    return "<http_test><value>" + escape(values.get(0)) + "</value></http_test>";
  }

  private static String escape(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }

  private static void answer(
      ChannelHandlerContext context, HttpResponseStatus status, String type, String body) {
    var content = ByteBufUtil.writeUtf8(context.alloc(), body);
    var response = new DefaultFullHttpResponse(HTTP_1_1, status, content);
    response.headers().set(CONTENT_TYPE, type).setInt(CONTENT_LENGTH, content.readableBytes());
    context.write(response);
  }

  public static void main(String[] arguments) throws Exception {
    boolean dynamic = arguments[0].equals("dynamic");
    boolean nativeEpoll = arguments[1].equals("native-epoll");
    String host = arguments[2];
    int port = Integer.parseInt(arguments[3]);
    int backlog = Integer.parseInt(arguments[4]);
    int workers = Integer.parseInt(arguments[5]);
    if (arguments[6].equals("poll")) {
      System.setProperty(
          "java.nio.channels.spi.SelectorProvider", "sun.nio.ch.PollSelectorProvider");
    }

    // One group accepts and serves, so that one worker is one thread.
    var loops =
        new MultiThreadIoEventLoopGroup(
            workers, nativeEpoll ? EpollIoHandler.newFactory() : NioIoHandler.newFactory());
    new ServerBootstrap()
        .group(loops)
        .channel(nativeEpoll ? EpollServerSocketChannel.class : NioServerSocketChannel.class)
        .option(ChannelOption.SO_BACKLOG, backlog)
        .childHandler(
            new ChannelInitializer<SocketChannel>() {
              @Override
              protected void initChannel(SocketChannel channel) {
                channel
                    .pipeline()
                    .addLast(new HttpServerCodec(LONGEST_LINE, LONGEST_HEADERS, LONGEST_CHUNK))
                    .addLast(new HttpServerKeepAliveHandler())
                    .addLast(new Handler(dynamic));
              }
            })
        .bind(host, port)
        .sync()
        .channel()
        .closeFuture()
        .sync();
  }
}
