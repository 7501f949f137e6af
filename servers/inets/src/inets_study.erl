%% OTP's own HTTP server, httpd of the inets application, serving files.
-module(inets_study).
-export([start/6]).

%% Listen on Address:Port; never returns. Folder holds the files.
start(Address, Port, Backlog, Options, Root, Folder) ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, IP} = inet:parse_address(Address),
    {ok, _} = inets:start(httpd, [
        {bind_address, IP}, {port, Port}, {ipfamily, inet},
        {server_name, "localhost"}, {server_root, Root}, {document_root, Folder},
        {mime_types, [{"txt", "text/plain"}]},
        {modules, [mod_alias, mod_get, mod_head]}
        | Options
    ]),
    %% httpd listens with 128 and crashes where it is given another number; the kernel takes that of
    %% the last listen(2).
    [ok] = [
        prim_inet:listen(Socket, Backlog)
     || Socket <- erlang:ports(), inet:sockname(Socket) =:= {ok, {IP, Port}},
        inet:peername(Socket) =:= {error, enotconn}
    ],
    receive after infinity -> ok end.
