import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
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

  public static void main(String[] arguments) throws Exception {
    String host = arguments[0];
    int port = Integer.parseInt(arguments[1]);
    new NettyWebServer(
            Executors.newSingleThreadScheduledExecutor(),
            new InetSocketAddress(host, port),
            new URI("http://" + host + ":" + port + "/"))
        .staleConnectionTimeout(TimeUnit.HOURS.toMillis(1))
        .add("/", new Echo())
        .start()
        .get();
  }
}
