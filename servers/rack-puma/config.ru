# A Rack program without a framework: a query value echoed in XML.
require 'cgi'

HEADERS = { 'content-type' => 'text/xml' }.freeze

run lambda { |environment|
  value = CGI.parse(environment['QUERY_STRING']).fetch('value', []).first
  inside = value ? "<value>#{CGI.escapeHTML value}</value>" : '<error>no value specified</error>'
  body = "<http_test>#{inside}</http_test>"
  [200, HEADERS.merge('content-length' => body.bytesize.to_s), [body]]
}
