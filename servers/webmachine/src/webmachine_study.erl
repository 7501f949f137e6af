%% Webmachine with one resource that answers GET / with the hello page.
-module(webmachine_study).
-export([start/3, init/1, content_types_provided/2, hello/2]).

%% Listen on Address:Port with the given listen backlog; never returns.
start(Address, Port, Backlog) ->
    {ok, _} = application:ensure_all_started(webmachine),
    {ok, _} = webmachine_mochiweb:start([
        {ip, Address}, {port, Port}, {backlog, Backlog}, {max, 1000000}, {nodelay, true},
        {dispatch, [{[], ?MODULE, []}]}
    ]),
    receive after infinity -> ok end.

init([]) ->
    {ok, undefined}.

content_types_provided(Request, State) ->
    {[{"text/plain", hello}], Request, State}.

hello(Request, State) ->
    {<<"Hello, world">>, Request, State}.
