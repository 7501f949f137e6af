import java.io.IOException;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.server.nio.SelectChannelConnector;

/**
 * "Hello, world" by Jetty 7.
 *
 * <p>HttpServer HOST PORT BACKLOG
 */
public final class HttpServer {
  private static final class Hello extends AbstractHandler {
    @Override
    public void handle(
        String target, Request base, HttpServletRequest request, HttpServletResponse response)
        throws IOException {
      response.setContentType("text/plain");
      response.getOutputStream().print("Hello, world");
      base.setHandled(true);
    }
  }

  public static void main(String[] arguments) throws Exception {
    SelectChannelConnector connector = new SelectChannelConnector();
    connector.setHost(arguments[0]);
    connector.setPort(Integer.parseInt(arguments[1]));
    connector.setAcceptQueueSize(Integer.parseInt(arguments[2]));
    Server server = new Server();
    server.addConnector(connector);
    server.setHandler(new Hello());
    server.start();
    server.join();
  }
}
