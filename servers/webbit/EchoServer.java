import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.jboss.netty.channel.Channel;
import org.jboss.netty.channel.ChannelHandlerContext;
import org.jboss.netty.channel.ChannelPipeline;
import org.jboss.netty.channel.ChannelPipelineFactory;
import org.jboss.netty.channel.ExceptionEvent;
import org.jboss.netty.channel.SimpleChannelUpstreamHandler;
import org.webbitserver.BaseWebSocketHandler;
import org.webbitserver.WebSocketConnection;
import org.webbitserver.netty.NettyWebServer;

/**
 * Sends every WebSocket message back.
 *
 * <p>EchoServer HOST PORT
 */
public final class EchoServer {
  private static final class Echo extends BaseWebSocketHandler {
    @Override
    public void onMessage(WebSocketConnection connection, String message) {
      connection.send(message);
    }

    @Override
    public void onMessage(WebSocketConnection connection, byte[] message) {
      connection.send(message);
    }
  }

  private static final class Close extends SimpleChannelUpstreamHandler {
    @Override
    public void exceptionCaught(ChannelHandlerContext context, ExceptionEvent event) {
      if (event.getCause() instanceof IllegalArgumentException) {
        context.getChannel().close();
      } else {
        context.sendUpstream(event);
      }
    }
  }

  // Webbit answers what is not HTTP with an error that it cannot send, whose exception it answers
  // with an error that it cannot send, for as long as that connection lasts. Its handlers of
  // exceptions are given no connection to close, and of its fields, all private, only the listening
  // channel leads to the pipeline: 0.4.15 is its last release, so that the name will not change.
  private static void closeWhatIsNotHttp(NettyWebServer server) throws Exception {
    Field field = NettyWebServer.class.getDeclaredField("channel");
    field.setAccessible(true);
    Channel listener = (Channel) field.get(server);
    ChannelPipelineFactory webbits = listener.getConfig().getPipelineFactory();
    listener
        .getConfig()
        .setPipelineFactory(
            () -> {
              ChannelPipeline pipeline = webbits.getPipeline();
              pipeline.addFirst("close", new Close());
              return pipeline;
            });
  }

  public static void main(String[] arguments) throws Exception {
    String host = arguments[0];
    int port = Integer.parseInt(arguments[1]);
    closeWhatIsNotHttp(
        new NettyWebServer(
                Executors.newSingleThreadScheduledExecutor(),
                new InetSocketAddress(host, port),
                new URI("http://" + host + ":" + port + "/"))
            .staleConnectionTimeout(TimeUnit.HOURS.toMillis(1))
            .add("/", new Echo())
            .start()
            .get());
  }
}
