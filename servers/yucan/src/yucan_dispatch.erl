%% The dispatch table, and the process that every request asks for its handler:
%% one of the two contention points that the post names.
-module(yucan_dispatch).
-export([start/0, dispatch/3]).

start() ->
    Turns = turns(),
    Handler = fun(_Headers) -> work(Turns), {200, <<"OK">>, <<"Hello, world">>} end,
    Table = [{<<"/">>, Handler}],
    spawn_link(fun() -> serve(Table) end).

%% Returns how many turns of a loop each request costs: those of the emulator's
%% flag -work, or none.
turns() ->
    case init:get_argument(work) of
        {ok, [[Turns]]} -> list_to_integer(Turns);
        error -> 0
    end.

work(0) -> done;
work(Turns) -> work(Turns - 1).

serve(Table) ->
    receive
        {find, Path, From, Reference} ->
            From ! {Reference, lists:keyfind(Path, 1, Table)},
            serve(Table)
    end.

%% Returns {Status, Reason, Body}. The handler runs in the calling process.
dispatch(Dispatcher, {'GET', {abs_path, Uri}, _Version}, Headers) ->
    [Path | _] = binary:split(Uri, <<"?">>),
    Reference = make_ref(),
    Dispatcher ! {find, Path, self(), Reference},
    receive
        {Reference, {Path, Handler}} -> Handler(Headers);
        {Reference, false} -> {404, <<"Not Found">>, <<"Not found">>}
    end;
dispatch(_Dispatcher, _Request, _Headers) ->
    {400, <<"Bad Request">>, <<"Bad request">>}.
