import static org.jboss.netty.handler.codec.http.HttpHeaders.Names.CONTENT_TYPE;
import static org.jboss.netty.handler.codec.http.HttpResponseStatus.OK;
import static org.jboss.netty.handler.codec.http.HttpVersion.HTTP_1_1;

import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import org.jboss.netty.bootstrap.ServerBootstrap;
import org.jboss.netty.buffer.ChannelBuffer;
import org.jboss.netty.buffer.ChannelBuffers;
import org.jboss.netty.channel.ChannelFuture;
import org.jboss.netty.channel.ChannelFutureListener;
import org.jboss.netty.channel.ChannelHandlerContext;
import org.jboss.netty.channel.Channels;
import org.jboss.netty.channel.ExceptionEvent;
import org.jboss.netty.channel.MessageEvent;
import org.jboss.netty.channel.SimpleChannelUpstreamHandler;
import org.jboss.netty.channel.socket.nio.NioServerSocketChannelFactory;
import org.jboss.netty.handler.codec.http.DefaultHttpResponse;
import org.jboss.netty.handler.codec.http.HttpHeaders;
import org.jboss.netty.handler.codec.http.HttpRequest;
import org.jboss.netty.handler.codec.http.HttpResponse;
import org.jboss.netty.handler.codec.http.HttpServerCodec;
import org.jboss.netty.util.CharsetUtil;

/**
 * "Hello, world" by Netty 3.
 *
 * <p>HttpServer HOST PORT BACKLOG WORKERS
 */
public final class HttpServer {
  private static final class Handler extends SimpleChannelUpstreamHandler {
    @Override
    public void messageReceived(ChannelHandlerContext context, MessageEvent event) {
      ChannelBuffer content = ChannelBuffers.copiedBuffer("Hello, world", CharsetUtil.UTF_8);
      HttpResponse response = new DefaultHttpResponse(HTTP_1_1, OK);
      response.setHeader(CONTENT_TYPE, "text/plain");
      HttpHeaders.setContentLength(response, content.readableBytes());
      response.setContent(content);
      ChannelFuture written = event.getChannel().write(response);
      if (!HttpHeaders.isKeepAlive((HttpRequest) event.getMessage())) {
        written.addListener(ChannelFutureListener.CLOSE);
      }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, ExceptionEvent event) {
      event.getChannel().close();
    }
  }

  public static void main(String[] arguments) {
    InetSocketAddress address =
        new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
    int backlog = Integer.parseInt(arguments[2]);
    int workers = Integer.parseInt(arguments[3]);

    ServerBootstrap bootstrap =
        new ServerBootstrap(
            new NioServerSocketChannelFactory(
                Executors.newCachedThreadPool(), Executors.newCachedThreadPool(), workers));
    bootstrap.setOption("backlog", backlog);
    bootstrap.setPipelineFactory(() -> Channels.pipeline(new HttpServerCodec(), new Handler()));
    bootstrap.bind(address);
  }
}
