%% Yaws embedded, with one bare appmod: no file is looked up, nothing is logged.
-module(yaws_hello).
-export([start/3, out/1]).

%% Listen on Address:Port with the given listen backlog; never returns.
start(Address, Port, Backlog) ->
    {ok, IP} = inet:parse_address(Address),
    {ok, _} = application:ensure_all_started(crypto),
    ok = yaws:start_embedded(
        "/tmp",
        [
            {servername, "localhost"}, {listen, IP}, {port, Port},
            {appmods, [{"/", ?MODULE}]},
            {flags, [{access_log, false}, {auth_log, false}]},
            {soptions, [{listen_opts, [{backlog, Backlog}]}]}
        ],
        [
            {logdir, "."}, {max_connections, nolimit},
            {flags, [{copy_errlog, false}]}
        ],
        "deathmatch"
    ),
    receive after infinity -> ok end.

out(_Arg) ->
    {content, "text/html", <<"Hello, world">>}.
