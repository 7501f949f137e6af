import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import org.glassfish.grizzly.http.server.HttpHandler;
import org.glassfish.grizzly.http.server.NetworkListener;
import org.glassfish.grizzly.http.server.Request;
import org.glassfish.grizzly.http.server.Response;

/**
 * Echoes a query value in XML, and "Hello, world" in the experiments that ask for it.
 *
 * <p>HttpServer EXPERIMENT HOST PORT BACKLOG WORKERS
 */
public final class HttpServer extends HttpHandler {
  private final boolean dynamic;

  private HttpServer(boolean dynamic) {
    this.dynamic = dynamic;
  }

  @Override
  public void service(Request request, Response response) throws Exception {
    if (dynamic) {
      answer(response, "text/xml", echo(request.getParameter("value")));
    } else {
      answer(response, "text/plain", "Hello, world");
    }
  }

  private static void answer(Response response, String type, String text) throws Exception {
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    response.setContentType(type);
    response.setContentLength(body.length);
    response.getOutputStream().write(body);
  }

  private static String echo(String value) {
    String inside =
        value == null
            ? "<error>no value specified</error>"
            : "<value>" + escaped(value) + "</value>";
    return "<http_test>" + inside + "</http_test>";
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }

  public static void main(String[] arguments) throws Exception {
    NetworkListener listener =
        new NetworkListener("echo", arguments[1], Integer.parseInt(arguments[2]));
    listener.getTransport().setServerConnectionBackLog(Integer.parseInt(arguments[3]));
    listener.getTransport().setSelectorRunnersCount(Integer.parseInt(arguments[4]));
    listener.getKeepAlive().setMaxRequestsCount(-1);
    org.glassfish.grizzly.http.server.HttpServer server =
        new org.glassfish.grizzly.http.server.HttpServer();
    server.addListener(listener);
    boolean dynamic = arguments[0].equals("dynamic");
    server.getServerConfiguration().addHttpHandler(new HttpServer(dynamic), "/");
    server.start();
    new CountDownLatch(1).await();
  }
}
