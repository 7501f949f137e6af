%% Holds as many messages as each line of standard input says, in ets, dets, mnesia or a list.
%% Answers with JSON: how many it holds, and the bytes they take by the runtime's own account.
-module(store).
-export([start/2]).

-record(message, {key, ttl, hide, body}).

start(Kind, BodyBytes) ->
    loop(Kind, BodyBytes, open(Kind), 0, 0).

loop(Kind, BodyBytes, Store, Held, Wanted) ->
    Full = lists:foldl(
        fun(Number, Filling) -> add(Kind, Filling, message(Number, BodyBytes)) end,
        Store,
        lists:seq(Held, Wanted - 1)
    ),
    [erlang:garbage_collect(Pid) || Pid <- processes()],
    io:format("{\"messages\": ~b, \"runtime_bytes\": ~b}~n", [Wanted, runtime_bytes(Kind)]),
    case io:get_line("") of
        eof -> halt();
        Line -> loop(Kind, BodyBytes, Full, Wanted, list_to_integer(string:trim(Line)))
    end.

%% Bodies of more than 64 bytes live outside of heaps and tables, counted by erlang:memory/1 only.
message(Number, BodyBytes) ->
    #message{
        key = <<Number:128>>,
        ttl = erlang:system_time(microsecond),
        hide = erlang:system_time(microsecond),
        body = rand:bytes(BodyBytes)
    }.

open(ets) ->
    ets:new(message, [set, {keypos, #message.key}]);
open(list) ->
    [];
open(dets) ->
    _ = file:delete("message.dets"),
    {ok, Table} = dets:open_file(message, [{file, "message.dets"}, {keypos, #message.key}]),
    Table;
open(mnesia) ->
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(message, [
        {ram_copies, [node()]}, {attributes, record_info(fields, message)}
    ]),
    message.

add(ets, Table, Message) ->
    true = ets:insert(Table, Message),
    Table;
add(list, List, Message) ->
    [Message | List];
add(dets, Table, Message) ->
    ok = dets:insert(Table, Message),
    Table;
add(mnesia, Table, Message) ->
    ok = mnesia:dirty_write(Table, Message),
    Table.

runtime_bytes(dets) ->
    ok = dets:sync(message),
    dets:info(message, file_size);
runtime_bytes(_) ->
    erlang:memory(total).
