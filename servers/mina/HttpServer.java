import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.mina.core.buffer.IoBuffer;
import org.apache.mina.core.service.IoHandlerAdapter;
import org.apache.mina.core.session.IoSession;
import org.apache.mina.http.HttpServerCodec;
import org.apache.mina.http.api.DefaultHttpResponse;
import org.apache.mina.http.api.HttpRequest;
import org.apache.mina.http.api.HttpStatus;
import org.apache.mina.http.api.HttpVersion;
import org.apache.mina.transport.socket.nio.NioSocketAcceptor;

/**
 * Echoes a query value in XML.
 *
 * <p>HttpServer HOST PORT BACKLOG WORKERS
 */
public final class HttpServer extends IoHandlerAdapter {
  @Override
  public void messageReceived(IoSession session, Object message) {
    // The end of a request without a body comes as a message of its own.
    if (!(message instanceof HttpRequest request)) {
      return;
    }
    String value = request.getParameter("value");
    String inside =
        value == null
            ? "<error>no value specified</error>"
            : "<value>" + escaped(URLDecoder.decode(value, StandardCharsets.UTF_8)) + "</value>";
    byte[] body = ("<http_test>" + inside + "</http_test>").getBytes(StandardCharsets.UTF_8);
    // MINA's own isKeepAlive() wants HTTP/1.1 to ask for what is its default.
    String asked = request.getHeader("connection");
    boolean stays =
        asked == null
            ? request.getProtocolVersion() == HttpVersion.HTTP_1_1
            : asked.equalsIgnoreCase("keep-alive");
    Map<String, String> headers =
        Map.of(
            "Content-Type", "text/xml",
            "Content-Length", Integer.toString(body.length),
            "Connection", stays ? "keep-alive" : "close");
    session.write(
        new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpStatus.SUCCESS_OK, headers));
    session.write(IoBuffer.wrap(body));
    if (!stays) {
      session.closeOnFlush();
    }
  }

  @Override
  public void exceptionCaught(IoSession session, Throwable cause) {
    session.closeNow();
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }

  public static void main(String[] arguments) throws Exception {
    NioSocketAcceptor acceptor = new NioSocketAcceptor(Integer.parseInt(arguments[3]));
    acceptor.setReuseAddress(true);
    acceptor.setBacklog(Integer.parseInt(arguments[2]));
    acceptor.getSessionConfig().setTcpNoDelay(true);
    acceptor.getFilterChain().addLast("http", new HttpServerCodec());
    acceptor.setHandler(new HttpServer());
    acceptor.bind(new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])));
  }
}
