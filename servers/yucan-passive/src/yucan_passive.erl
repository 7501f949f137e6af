%% servers/yucan with passive sockets: a connection's process asks for each part
%% of the request with recv, where Yucan's is sent all of them as messages. The
%% acceptor hands a socket over in the same way; the dispatcher is Yucan's own.
-module(yucan_passive).
-export([start/3]).

-define(HEADER_TIMEOUT_MS, 60000).
-define(PERMISSION_TIMEOUT_MS, 60000).

%% Listen on Address:Port with the given listen backlog; never returns.
start(Address, Port, Backlog) ->
    Dispatcher = yucan_dispatch:start(),
    {ok, IP} = inet:getaddr(Address, inet),
    {ok, Listener} = gen_tcp:listen(Port, [
        binary, {ip, IP}, {backlog, Backlog}, {reuseaddr, true},
        {active, false}, {packet, raw}, {nodelay, true}
    ]),
    accept(Dispatcher, Listener).

accept(Dispatcher, Listener) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            Pid = spawn(fun() -> connection(Dispatcher, Socket) end),
            case gen_tcp:controlling_process(Socket, Pid) of
                ok -> Pid ! permission;
                {error, _} -> exit(Pid, kill), gen_tcp:close(Socket)
            end,
            accept(Dispatcher, Listener);
        {error, Reason} when Reason =:= econnaborted; Reason =:= emfile; Reason =:= enfile ->
            accept(Dispatcher, Listener);
        {error, Reason} ->
            io:format(standard_error, "acceptor died: ~p~n", [Reason]),
            halt(1)
    end.

connection(Dispatcher, Socket) ->
    receive
        permission ->
            inet:setopts(Socket, [{packet, http_bin}]),
            Until = erlang:monotonic_time(millisecond) + ?HEADER_TIMEOUT_MS,
            collect(Dispatcher, Socket, Until, undefined, [])
    after ?PERMISSION_TIMEOUT_MS -> timeout
    end.

collect(Dispatcher, Socket, Until, Request, Headers) ->
    Left = max(0, Until - erlang:monotonic_time(millisecond)),
    case gen_tcp:recv(Socket, 0, Left) of
        {ok, {http_request, Method, Uri, Version}} ->
            collect(Dispatcher, Socket, Until, {Method, Uri, Version}, Headers);
        {ok, {http_header, _, Name, _, Value}} ->
            collect(Dispatcher, Socket, Until, Request, [{Name, Value} | Headers]);
        {ok, http_eoh} ->
            inet:setopts(Socket, [{packet, raw}]),
            reply(Socket, yucan_dispatch:dispatch(Dispatcher, Request, lists:reverse(Headers)));
        {ok, {http_error, _}} ->
            reply(Socket, {400, <<"Bad Request">>, <<"Bad request">>});
        {error, timeout} ->
            reply(Socket, {408, <<"Request Timeout">>, <<"Request timeout">>});
        {error, _} ->
            gen_tcp:close(Socket)
    end.

reply(Socket, {Status, Reason, Body}) ->
    gen_tcp:send(Socket, [
        <<"HTTP/1.1 ">>, integer_to_list(Status), $\s, Reason, <<"\r\n">>,
        <<"Content-Type: text/html\r\nConnection: close\r\nContent-Length: ">>,
        integer_to_list(byte_size(Body)), <<"\r\n\r\n">>, Body
    ]),
    gen_tcp:close(Socket).
