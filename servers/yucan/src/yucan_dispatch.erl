%% The dispatch table, and the process that every request asks for its handler:
%% one of the two contention points that the post names.
-module(yucan_dispatch).
-export([start/0, dispatch/3]).

start() ->
    Table = [{<<"/">>, fun(_Headers) -> {200, <<"OK">>, <<"Hello, world">>} end}],
    spawn_link(fun() -> serve(Table) end).

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
