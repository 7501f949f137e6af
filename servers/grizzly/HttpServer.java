import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import org.glassfish.grizzly.http.server.HttpHandler;
import org.glassfish.grizzly.http.server.NetworkListener;
import org.glassfish.grizzly.http.server.Request;
import org.glassfish.grizzly.http.server.Response;

/**
 * Echoes a query value in XML.
 *
 * <p>HttpServer HOST PORT BACKLOG WORKERS
 */
public final class HttpServer extends HttpHandler {
  @Override
  public void service(Request request, Response response) throws Exception {
    String value = request.getParameter("value");
    String inside =
        value == null
            ? "<error>no value specified</error>"
            : "<value>" + escaped(value) + "</value>";
    byte[] body = ("<http_test>" + inside + "</http_test>").getBytes(StandardCharsets.UTF_8);
    response.setContentType("text/xml");
    response.setContentLength(body.length);
    response.getOutputStream().write(body);
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }

  public static void main(String[] arguments) throws Exception {
    NetworkListener listener =
        new NetworkListener("echo", arguments[0], Integer.parseInt(arguments[1]));
    listener.getTransport().setServerConnectionBackLog(Integer.parseInt(arguments[2]));
    listener.getTransport().setSelectorRunnersCount(Integer.parseInt(arguments[3]));
    listener.getKeepAlive().setMaxRequestsCount(-1);
    org.glassfish.grizzly.http.server.HttpServer server =
        new org.glassfish.grizzly.http.server.HttpServer();
    server.addListener(listener);
    server.getServerConfiguration().addHttpHandler(new HttpServer(), "/");
    server.start();
    new CountDownLatch(1).await();
  }
}
