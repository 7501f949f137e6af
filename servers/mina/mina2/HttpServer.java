import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.apache.mina.core.buffer.IoBuffer;
import org.apache.mina.core.future.IoFutureListener;
import org.apache.mina.core.future.WriteFuture;
import org.apache.mina.core.service.IoHandlerAdapter;
import org.apache.mina.core.session.IoSession;
import org.apache.mina.filter.codec.CumulativeProtocolDecoder;
import org.apache.mina.filter.codec.ProtocolCodecFilter;
import org.apache.mina.filter.codec.ProtocolDecoderException;
import org.apache.mina.filter.codec.ProtocolDecoderOutput;
import org.apache.mina.filter.codec.ProtocolEncoderAdapter;
import org.apache.mina.filter.codec.ProtocolEncoderOutput;
import org.apache.mina.transport.socket.nio.NioSocketAcceptor;

/**
 * "Hello, world" by MINA 2.0 to 2.2, with HTTP by hand: MINA 2.0.4 has no HTTP codec.
 *
 * <p>HttpServer HOST PORT BACKLOG WORKERS
 */
public final class HttpServer extends IoHandlerAdapter {
  private static final int LONGEST_REQUEST = 8192;
  private static final String BODY = "Hello, world";

  /** Takes the bytes up to an empty line as one request. */
  private static final class RequestDecoder extends CumulativeProtocolDecoder {
    @Override
    protected boolean doDecode(IoSession session, IoBuffer bytes, ProtocolDecoderOutput requests)
        throws ProtocolDecoderException {
      int start = bytes.position();
      for (int end = start + 4; end <= bytes.limit(); end++) {
        // CR LF CR LF
        if (bytes.get(end - 1) == '\n' && bytes.getInt(end - 4) == 0x0d0a0d0a) {
          byte[] request = new byte[end - start];
          bytes.get(request);
          requests.write(new String(request, StandardCharsets.ISO_8859_1));
          return true;
        }
      }
      if (bytes.remaining() > LONGEST_REQUEST) {
        throw new ProtocolDecoderException("a request longer than " + LONGEST_REQUEST + " bytes");
      }
      return false;
    }
  }

  /** Encodes nothing: the handler writes bytes, which the codec filter leaves as they are. */
  private static final class NoEncoder extends ProtocolEncoderAdapter {
    @Override
    public void encode(IoSession session, Object message, ProtocolEncoderOutput output) {
      throw new IllegalArgumentException("not bytes: " + message);
    }
  }

  @Override
  public void messageReceived(IoSession session, Object message) {
    String request = (String) message;
    int lineEnd = request.indexOf("\r\n");
    String requestLine = request.substring(0, lineEnd);
    if (!requestLine.startsWith("GET ")) {
      close(session);
      return;
    }
    String headers = request.substring(lineEnd).toLowerCase(Locale.ROOT);
    boolean stays =
        requestLine.endsWith(" HTTP/1.1") && !headers.contains("\r\nconnection: close\r\n");
    String answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
            + BODY.length()
            + (stays ? "" : "\r\nConnection: close")
            + "\r\n\r\n"
            + BODY;
    WriteFuture written =
        session.write(IoBuffer.wrap(answer.getBytes(StandardCharsets.ISO_8859_1)));
    if (!stays) {
      written.addListener(IoFutureListener.CLOSE);
    }
  }

  @Override
  public void exceptionCaught(IoSession session, Throwable cause) {
    close(session);
  }

  /** Closes at once; MINA 2.0.4 has no closeNow(), and later releases deprecate close(). */
  @SuppressWarnings("deprecation")
  private static void close(IoSession session) {
    session.close(true);
  }

  public static void main(String[] arguments) throws Exception {
    NioSocketAcceptor acceptor = new NioSocketAcceptor(Integer.parseInt(arguments[3]));
    acceptor.setReuseAddress(true);
    acceptor.setBacklog(Integer.parseInt(arguments[2]));
    acceptor
        .getFilterChain()
        .addLast("http", new ProtocolCodecFilter(new NoEncoder(), new RequestDecoder()));
    acceptor.setHandler(new HttpServer());
    acceptor.bind(new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])));
  }
}
