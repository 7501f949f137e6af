%% Cowboy and MochiWeb with the handlers of servers/cowboy and servers/mochiweb, each answer after
%% WORK_US of CPU time. Erlang has no clock of a process's own CPU time, and runs several at once: the
%% work is as many turns of a loop as take so long where nothing else runs, at the start.
-module(study_work).
-behaviour(cowboy_middleware).
-export([cowboy/3, mochiweb/3, execute/2]).

-define(WORK_US, 10000).
-define(SAMPLE, 1000000).

%% Listen on Address:Port; never returns.
cowboy(Address, Port, Backlog) ->
    calibrate(),
    cowboy_study:start(Address, Port, Backlog, 65535, #{
        request_timeout => 60000,
        middlewares => [?MODULE, cowboy_router, cowboy_handler]
    }).

%% Listen on Address:Port; never returns.
mochiweb(Address, Port, Backlog) ->
    calibrate(),
    {ok, _} = mochiweb_http:start([
        {ip, Address}, {port, Port}, {backlog, Backlog}, {max, 1000000},
        {loop, fun(Request) -> work(), mochiweb_study:dynamic(Request) end}
    ]),
    receive after infinity -> ok end.

execute(Request, Environment) ->
    work(),
    {ok, Request, Environment}.

calibrate() ->
    Sample_us = lists:min([element(1, timer:tc(fun() -> turn(?SAMPLE) end)) || _ <- lists:seq(1, 50)]),
    persistent_term:put(?MODULE, ?SAMPLE * ?WORK_US div max(Sample_us, 1)).

work() ->
    turn(persistent_term:get(?MODULE)).

turn(0) -> ok;
turn(N) -> turn(N - 1).
