%% Yaws embedded, in the ways that are compared.
-module(yaws_study).
-export([start/7]).

%% Listen on Address:Port; never returns. Experiment is a string; Setup is a key of server.toml's
%% [configurations]; Logs and Files are folders.
start(Experiment, Setup, Address, Port, Backlog, Logs, Files) ->
    {ok, IP} = inet:getaddr(Address, inet),
    ok = application:start(crypto),
    ok = filelib:ensure_dir(filename:join(Logs, "log")),
    {Listen, Site, Server} = setup(Setup, page(Experiment)),
    ok = yaws:start_embedded(
        Files,
        [
            {servername, "localhost"}, {listen, IP}, {port, Port},
            {soptions, [{listen_opts, [{backlog, Backlog} | Listen]}]}
            | Site
        ],
        [
            {logdir, Logs}, {max_connections, nolimit}, {flags, [{copy_errlog, false}]}
            | Server
        ],
        "deathmatch"
    ),
    receive after infinity -> ok end.

page("dynamic") -> yaws_dynamic;
page(_) -> yaws_hello.

%% Returns the options of the listener, of the site and of the whole server.
setup(bare, Page) ->
    {[], [{appmods, [{"/", Page}]} | unlogged()], []};
setup(production, Page) ->
    {
        [],
        [
            {appmods, [{"/", Page}]}, {arg_rewrite_mod, yaws_rewriter},
            {flags, [{access_log, true}, {auth_log, true}]}
        ],
        []
    };
setup(cached, _) ->
    {[], unlogged(), []};
setup(uncached, _) ->
    {[{nodelay, true}], unlogged(), [{max_size_cached_file, 0}]}.

unlogged() ->
    [{flags, [{access_log, false}, {auth_log, false}]}].
