%% Yucan, written anew from Walkin's description of his server: a central TCP
%% acceptor, a process for each connection, OTP's {packet, http_bin} parser in
%% active mode, a time limit on the headers, and a dispatch table behind a
%% process of its own.  The post shows parts of the original; none is copied.
-module(yucan).
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
            %% Only the owner gets the socket's messages: it must not turn the
            %% socket active before it owns it.
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
            inet:setopts(Socket, [{packet, http_bin}, {active, true}]),
            Timer = erlang:start_timer(?HEADER_TIMEOUT_MS, self(), headers),
            collect(Dispatcher, Socket, Timer, undefined, [])
    after ?PERMISSION_TIMEOUT_MS -> timeout
    end.

collect(Dispatcher, Socket, Timer, Request, Headers) ->
    receive
        {http, Socket, {http_request, Method, Uri, Version}} ->
            collect(Dispatcher, Socket, Timer, {Method, Uri, Version}, Headers);
        {http, Socket, {http_header, _, Name, _, Value}} ->
            collect(Dispatcher, Socket, Timer, Request, [{Name, Value} | Headers]);
        {http, Socket, http_eoh} ->
            inet:setopts(Socket, [{active, false}, {packet, raw}]),
            reply(Socket, yucan_dispatch:dispatch(Dispatcher, Request, lists:reverse(Headers)));
        {http, Socket, {http_error, _}} ->
            reply(Socket, {400, <<"Bad Request">>, <<"Bad request">>});
        {tcp_closed, Socket} ->
            closed;
        {tcp_error, Socket, _} ->
            gen_tcp:close(Socket);
        {timeout, Timer, headers} ->
            reply(Socket, {408, <<"Request Timeout">>, <<"Request timeout">>})
    end.

reply(Socket, {Status, Reason, Body}) ->
    gen_tcp:send(Socket, [
        <<"HTTP/1.1 ">>, integer_to_list(Status), $\s, Reason, <<"\r\n">>,
        <<"Content-Type: text/html\r\nConnection: close\r\nContent-Length: ">>,
        integer_to_list(byte_size(Body)), <<"\r\n\r\n">>, Body
    ]),
    gen_tcp:close(Socket).
