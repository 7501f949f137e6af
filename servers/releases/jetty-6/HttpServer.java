import java.io.IOException;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.mortbay.jetty.Request;
import org.mortbay.jetty.Server;
import org.mortbay.jetty.handler.AbstractHandler;
import org.mortbay.jetty.nio.SelectChannelConnector;

/**
 * "Hello, world" by Jetty 6.
 *
 * <p>HttpServer HOST PORT BACKLOG
 */
public final class HttpServer {
  private static final class Hello extends AbstractHandler {
    @Override
    public void handle(
        String target, HttpServletRequest request, HttpServletResponse response, int dispatch)
        throws IOException {
      response.setContentType("text/plain");
      response.getOutputStream().print("Hello, world");
      ((Request) request).setHandled(true);
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
