%% OTP's own HTTP server, httpd of the inets application, serving files.
-module(inets_study).
-export([start/5]).

%% Listen on Address:Port; never returns. Folder holds the files.
start(Address, Port, Options, Root, Folder) ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, IP} = inet:parse_address(Address),
    {ok, _} = inets:start(httpd, [
        {bind_address, IP}, {port, Port}, {ipfamily, inet},
        {server_name, "localhost"}, {server_root, Root}, {document_root, Folder},
        {mime_types, [{"txt", "text/plain"}]},
        {modules, [mod_alias, mod_get, mod_head]}
        | Options
    ]),
    receive after infinity -> ok end.
