%% Cowboy with the query echo as a plain handler.
-module(cowboy_study).
-behaviour(cowboy_handler).
-export([start/5, init/2]).

%% Listen on Address:Port; never returns. MaxConnections is Ranch's, Options are Cowboy's.
start(Address, Port, Backlog, MaxConnections, Options) ->
    {ok, _} = application:ensure_all_started(cowboy),
    {ok, IP} = inet:parse_address(Address),
    Dispatch = cowboy_router:compile([{'_', [{'_', ?MODULE, []}]}]),
    {ok, _} = cowboy:start_clear(
        ?MODULE,
        #{
            max_connections => MaxConnections,
            socket_opts => [{ip, IP}, {port, Port}, {backlog, Backlog}]
        },
        Options#{env => #{dispatch => Dispatch}}
    ),
    receive after infinity -> ok end.

init(Request, State) ->
    Body = case lists:keyfind(<<"value">>, 1, cowboy_req:parse_qs(Request)) of
        false -> <<"<http_test><error>no value specified</error></http_test>">>;
        {_, Value} ->
            [<<"<http_test><value>">>, escape(Value), <<"</value></http_test>">>]
    end,
    {ok, cowboy_req:reply(200, #{<<"content-type">> => <<"text/xml">>}, Body, Request), State}.

escape(Text) ->
    << <<(escape_character(C))/binary>> || <<C>> <= Text >>.

escape_character($&) -> <<"&amp;">>;
escape_character($<) -> <<"&lt;">>;
escape_character($>) -> <<"&gt;">>;
escape_character(C) -> <<C>>.
