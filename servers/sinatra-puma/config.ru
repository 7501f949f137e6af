# Sinatra: a query value echoed in XML.
require 'cgi'
require 'sinatra/base'

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

run Echo
