%% A WebSocket echo by Cowboy: a process for each connection.
-module(cowboy_echo).
-behaviour(cowboy_websocket).
-export([start/3, init/2, websocket_handle/2, websocket_info/2]).

%% Listen on Address:Port; never returns.
start(Address, Port, Backlog) ->
    {ok, _} = application:ensure_all_started(cowboy),
    {ok, IP} = inet:parse_address(Address),
    Dispatch = cowboy_router:compile([{'_', [{"/", ?MODULE, none}]}]),
    {ok, _} = cowboy:start_clear(
        ?MODULE,
        #{
            max_connections => infinity,
            socket_opts => [{ip, IP}, {port, Port}, {backlog, Backlog}]
        },
        #{env => #{dispatch => Dispatch}, request_timeout => infinity}
    ),
    receive after infinity -> ok end.

init(Request, State) ->
    {cowboy_websocket, Request, State, #{idle_timeout => infinity}}.

%% Cowboy has put the fragments together, and answers pings and closes by itself.
websocket_handle({text, _} = Message, State) -> {[Message], State};
websocket_handle({binary, _} = Message, State) -> {[Message], State};
websocket_handle(_, State) -> {[], State}.

websocket_info(_, State) -> {[], State}.
