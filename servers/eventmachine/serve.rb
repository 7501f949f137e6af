# A query value echoed in XML by hand on EventMachine, one process.
# serve.rb ADDRESS PORT BACKLOG
require 'cgi'
require 'eventmachine'
require 'socket'

class Connection < EventMachine::Connection
  LONGEST_HEAD = 65_536

  def post_init
    @arrived = +''
  end

  def receive_data(data)
    @arrived << data
    while (ending = @arrived.index("\r\n\r\n"))
      reply @arrived.slice!(0, ending + 4)
    end
    close_connection if @arrived.bytesize > LONGEST_HEAD
  end

  private

  def reply(head)
    target, minor = head.match(%r{\AGET (/\S*) HTTP/1\.([01])\r\n})&.captures
    return refuse unless target

    wish = head[/^Connection:[ \t]*([^\r\n]*?)[ \t]*\r$/i, 1]&.downcase
    last = (wish || (minor == '1' ? 'keep-alive' : 'close')) != 'keep-alive'
    body = answer(target.partition('?').last)
    send_data "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: #{body.bytesize}\r\n" \
              "Connection: #{last ? 'close' : 'keep-alive'}\r\n\r\n#{body}"
    close_connection_after_writing if last
  end

  def answer(query)
    value = CGI.parse(query).fetch('value', []).first
    inside = value ? "<value>#{CGI.escapeHTML value}</value>" : '<error>no value specified</error>'
    "<http_test>#{inside}</http_test>"
  end

  def refuse
    send_data "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    close_connection_after_writing
  end
end

address, port, backlog = ARGV
listener = Socket.new :INET, :STREAM
listener.setsockopt :SOCKET, :REUSEADDR, true
listener.bind Addrinfo.tcp(address, Integer(port))
EventMachine.epoll
EventMachine.run do
  listener.listen Integer(backlog)
  EventMachine.attach_server listener, Connection
  # It listens again, with a backlog of its own.
  listener.listen Integer(backlog)
end
