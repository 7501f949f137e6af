import static io.netty.handler.codec.http.HttpResponseStatus.BAD_REQUEST;
import static io.netty.handler.codec.http.HttpResponseStatus.OK;
import static io.netty.handler.codec.http.HttpVersion.HTTP_1_1;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.util.CharsetUtil;

/**
 * "Hello, world" by Netty 4.0 or 4.1, in what both have: 4.1 calls some of it deprecated.
 *
 * <p>HttpServer HOST PORT BACKLOG WORKERS
 */
@SuppressWarnings("deprecation")
public final class HttpServer {
  private static final class Handler extends SimpleChannelInboundHandler<HttpObject> {
    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
      if (!(message instanceof HttpRequest)) {
        return;
      }
      HttpRequest request = (HttpRequest) message;
      if (request.getDecoderResult().isFailure()) {
        answer(context, BAD_REQUEST, "Bad request", false);
      } else {
        answer(context, OK, "Hello, world", HttpHeaders.isKeepAlive(request));
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

  private static void answer(
      ChannelHandlerContext context, HttpResponseStatus status, String body, boolean keepAlive) {
    ByteBuf content = context.alloc().buffer().writeBytes(body.getBytes(CharsetUtil.UTF_8));
    FullHttpResponse response = new DefaultFullHttpResponse(HTTP_1_1, status, content);
    response.headers().set("Content-Type", "text/plain");
    response.headers().set("Content-Length", content.readableBytes());
    ChannelFuture written = context.write(response);
    if (!keepAlive) {
      written.addListener(ChannelFutureListener.CLOSE);
    }
  }

  public static void main(String[] arguments) throws Exception {
    String host = arguments[0];
    int port = Integer.parseInt(arguments[1]);
    int backlog = Integer.parseInt(arguments[2]);
    int workers = Integer.parseInt(arguments[3]);

    // One group accepts and serves, so that one worker is one thread.
    EventLoopGroup loops = new NioEventLoopGroup(workers);
    new ServerBootstrap()
        .group(loops)
        .channel(NioServerSocketChannel.class)
        .option(ChannelOption.SO_BACKLOG, backlog)
        .childHandler(
            new ChannelInitializer<SocketChannel>() {
              @Override
              protected void initChannel(SocketChannel channel) {
                channel.pipeline().addLast(new HttpServerCodec(), new Handler());
              }
            })
        .bind(host, port)
        .sync()
        .channel()
        .closeFuture()
        .sync();
  }
}
