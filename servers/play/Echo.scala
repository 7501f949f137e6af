import org.apache.pekko.stream.scaladsl.Flow
import play.api.Mode
import play.api.http.websocket.Message
import play.api.mvc.WebSocket
import play.api.routing.sird._
import play.core.server.PekkoHttpServer
import play.core.server.ServerConfig

/** Sends every WebSocket message back: Echo HOST PORT. */
object Echo {
  def main(arguments: Array[String]): Unit = {
    val config =
      ServerConfig(address = arguments(0), port = Some(arguments(1).toInt), mode = Mode.Prod)
    PekkoHttpServer.fromRouterWithComponents(config) { _ =>
      { case GET(p"/") => WebSocket.accept[Message, Message](_ => Flow[Message]) }
    }
    ()
  }
}
