import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/**
 * "Hello, world" by Jetty 12, with the handlers of its core instead of servlets.
 *
 * <p>HttpServer HOST PORT BACKLOG
 */
public final class HttpServer {
  private static final class Hello extends Handler.Abstract.NonBlocking {
    @Override
    public boolean handle(Request request, Response response, Callback callback) {
      byte[] body = "Hello, world".getBytes(StandardCharsets.UTF_8);
      response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain");
      response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
      response.write(true, ByteBuffer.wrap(body), callback);
      return true;
    }
  }

  public static void main(String[] arguments) throws Exception {
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost(arguments[0]);
    connector.setPort(Integer.parseInt(arguments[1]));
    connector.setAcceptQueueSize(Integer.parseInt(arguments[2]));
    server.addConnector(connector);
    server.setHandler(new Hello());
    server.start();
    server.join();
  }
}
