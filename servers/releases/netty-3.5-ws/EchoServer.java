import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import org.jboss.netty.bootstrap.ServerBootstrap;
import org.jboss.netty.channel.ChannelFuture;
import org.jboss.netty.channel.ChannelFutureListener;
import org.jboss.netty.channel.ChannelHandlerContext;
import org.jboss.netty.channel.Channels;
import org.jboss.netty.channel.ExceptionEvent;
import org.jboss.netty.channel.MessageEvent;
import org.jboss.netty.channel.SimpleChannelUpstreamHandler;
import org.jboss.netty.channel.socket.nio.NioServerSocketChannelFactory;
import org.jboss.netty.handler.codec.http.DefaultHttpResponse;
import org.jboss.netty.handler.codec.http.HttpRequest;
import org.jboss.netty.handler.codec.http.HttpRequestDecoder;
import org.jboss.netty.handler.codec.http.HttpResponse;
import org.jboss.netty.handler.codec.http.HttpResponseEncoder;
import org.jboss.netty.handler.codec.http.HttpResponseStatus;
import org.jboss.netty.handler.codec.http.HttpVersion;
import org.jboss.netty.handler.codec.http.websocketx.CloseWebSocketFrame;
import org.jboss.netty.handler.codec.http.websocketx.PingWebSocketFrame;
import org.jboss.netty.handler.codec.http.websocketx.PongWebSocketFrame;
import org.jboss.netty.handler.codec.http.websocketx.WebSocketFrame;
import org.jboss.netty.handler.codec.http.websocketx.WebSocketServerHandshaker;
import org.jboss.netty.handler.codec.http.websocketx.WebSocketServerHandshakerFactory;

/**
 * Sends every WebSocket message back, frame by frame, as Netty 3 puts no message together.
 *
 * <p>EchoServer HOST PORT BACKLOG WORKERS
 */
public final class EchoServer {
  private static final int LONGEST_FRAME = 1 << 20;

  private static final class Echo extends SimpleChannelUpstreamHandler {
    private final WebSocketServerHandshakerFactory handshakers;
    private WebSocketServerHandshaker handshaker;

    Echo(WebSocketServerHandshakerFactory handshakers) {
      this.handshakers = handshakers;
    }

    @Override
    public void messageReceived(ChannelHandlerContext context, MessageEvent event) {
      if (event.getMessage() instanceof HttpRequest) {
        open(context, (HttpRequest) event.getMessage());
      } else {
        answer(context, (WebSocketFrame) event.getMessage());
      }
    }

    private void open(ChannelHandlerContext context, HttpRequest request) {
      if (!"websocket".equalsIgnoreCase(request.getHeader("Upgrade"))) {
        HttpResponse refusal =
            new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.BAD_REQUEST);
        context.getChannel().write(refusal).addListener(ChannelFutureListener.CLOSE);
        return;
      }
      handshaker = handshakers.newHandshaker(request);
      if (handshaker == null) {
        handshakers.sendUnsupportedWebSocketVersionResponse(context.getChannel());
        return;
      }
      ChannelFuture written = handshaker.handshake(context.getChannel(), request);
      written.addListener(WebSocketServerHandshaker.HANDSHAKE_LISTENER);
    }

    private void answer(ChannelHandlerContext context, WebSocketFrame frame) {
      if (frame instanceof CloseWebSocketFrame) {
        handshaker.close(context.getChannel(), (CloseWebSocketFrame) frame);
      } else if (frame instanceof PingWebSocketFrame) {
        context.getChannel().write(new PongWebSocketFrame(frame.getBinaryData()));
      } else if (!(frame instanceof PongWebSocketFrame)) {
        context.getChannel().write(frame);
      }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, ExceptionEvent event) {
      context.getChannel().close();
    }
  }

  public static void main(String[] arguments) {
    InetSocketAddress address =
        new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
    int backlog = Integer.parseInt(arguments[2]);
    int workers = Integer.parseInt(arguments[3]);

    WebSocketServerHandshakerFactory handshakers =
        new WebSocketServerHandshakerFactory("/", null, false, LONGEST_FRAME);
    ServerBootstrap bootstrap =
        new ServerBootstrap(
            new NioServerSocketChannelFactory(
                Executors.newCachedThreadPool(), Executors.newCachedThreadPool(), workers));
    bootstrap.setOption("backlog", backlog);
    // The handshake replaces decoder and encoder, which it finds only apart.
    bootstrap.setPipelineFactory(
        () ->
            Channels.pipeline(
                new HttpRequestDecoder(), new HttpResponseEncoder(), new Echo(handshakers)));
    bootstrap.bind(address);
  }
}
