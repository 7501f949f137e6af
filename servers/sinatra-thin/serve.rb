# Sinatra on Thin: a query value echoed in XML.
# serve.rb ADDRESS PORT
require 'cgi'
require 'sinatra/base'
require 'thin'

class Echo < Sinatra::Base
  set :environment, :production

  get '/' do
    content_type 'text/xml'
    if params.key? 'value'
      "<http_test><value>#{CGI.escapeHTML params['value']}</value></http_test>"
    else
      '<http_test><error>no value specified</error></http_test>'
    end
  end
end

address, port = ARGV
Thin::Logging.silent = true
server = Thin::Server.new address, Integer(port), Echo
server.maximum_connections = Integer(Process.getrlimit(:NOFILE).first)
server.maximum_persistent_connections = server.maximum_connections
server.config
server.start
