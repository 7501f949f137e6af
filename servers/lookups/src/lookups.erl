%% MochiWeb with the handler of servers/mochiweb, each answer after LOOKUPS lookups of the value in the
%% list of the query's pairs.
-module(lookups).
-export([start/4, get_key_value/2]).

-define(LOOKUPS, 500000).

%% Listen on Address:Port; never returns. Function is proplists or keyfind.
start(Function, Address, Port, Backlog) ->
    Loop = fun(Request) ->
        look(Function, ?LOOKUPS, mochiweb_request:parse_qs(Request)),
        mochiweb_study:dynamic(Request)
    end,
    {ok, _} = mochiweb_http:start([
        {ip, Address}, {port, Port}, {backlog, Backlog}, {max, 1000000}, {loop, Loop}
    ]),
    receive after infinity -> ok end.

look(_, 0, _) -> ok;
look(proplists, N, Pairs) ->
    _ = proplists:get_value("value", Pairs),
    look(proplists, N - 1, Pairs);
look(keyfind, N, Pairs) ->
    _ = ?MODULE:get_key_value("value", Pairs),
    look(keyfind, N - 1, Pairs).

%% What Misultin's function of that name does (ostinelli/misultin, commit 714841b, misultin_utility.erl).
get_key_value(Key, Pairs) ->
    case lists:keyfind(Key, 1, Pairs) of
        {_, Value} -> Value;
        false -> undefined
    end.
