%% Yucan, written anew from Walkin's description of his server: a central TCP
%% acceptor, a process for each connection, OTP's {packet, http_bin} parser in
%% active mode, a time limit on the headers, and a dispatch table behind a
%% process of its own.  The post shows parts of the original; none is copied.
%% In passive mode, which a commenter asked for, a connection's process asks for
%% each part of the request where it is otherwise sent all of them as messages.
-module(yucan).
-export([start/3, start/4]).

-define(HEADER_TIMEOUT_MS, 60000).
-define(PERMISSION_TIMEOUT_MS, 60000).

%% Listen on Address:Port with the given listen backlog; never returns.
start(Address, Port, Backlog) ->
    start(Address, Port, Backlog, active).

%% The same; Mode, active or passive, is how connections are read.
start(Address, Port, Backlog, Mode) ->
    Dispatcher = yucan_dispatch:start(),
    {ok, IP} = inet:getaddr(Address, inet),
    {ok, Listener} = gen_tcp:listen(Port, [
        binary, {ip, IP}, {backlog, Backlog}, {reuseaddr, true},
        {active, false}, {packet, raw}, {nodelay, true}
    ]),
    accept(Dispatcher, Listener, Mode).

accept(Dispatcher, Listener, Mode) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            Pid = spawn(fun() -> connection(Dispatcher, Socket, Mode) end),
            %% Only the owner gets the socket's messages: it must not turn the
            %% socket active before it owns it.
            case gen_tcp:controlling_process(Socket, Pid) of
                ok -> Pid ! permission;
                {error, _} -> exit(Pid, kill), gen_tcp:close(Socket)
            end,
            accept(Dispatcher, Listener, Mode);
        {error, Reason} when Reason =:= econnaborted; Reason =:= emfile; Reason =:= enfile ->
            accept(Dispatcher, Listener, Mode);
        {error, Reason} ->
            io:format(standard_error, "acceptor died: ~p~n", [Reason]),
            halt(1)
    end.

connection(Dispatcher, Socket, Mode) ->
    receive
        permission ->
            inet:setopts(Socket, [{packet, http_bin}, {active, Mode =:= active}]),
            Timer = erlang:start_timer(?HEADER_TIMEOUT_MS, self(), headers),
            collect(Dispatcher, Socket, Mode, Timer, undefined, [])
    after ?PERMISSION_TIMEOUT_MS -> timeout
    end.

collect(Dispatcher, Socket, Mode, Timer, Request, Headers) ->
    case part(Mode, Socket, Timer) of
        {http_request, Method, Uri, Version} ->
            collect(Dispatcher, Socket, Mode, Timer, {Method, Uri, Version}, Headers);
        {http_header, _, Name, _, Value} ->
            collect(Dispatcher, Socket, Mode, Timer, Request, [{Name, Value} | Headers]);
        http_eoh ->
            inet:setopts(Socket, [{active, false}, {packet, raw}]),
            reply(Socket, yucan_dispatch:dispatch(Dispatcher, Request, lists:reverse(Headers)));
        {http_error, _} ->
            reply(Socket, {400, <<"Bad Request">>, <<"Bad request">>});
        closed ->
            gen_tcp:close(Socket);
        timeout ->
            reply(Socket, {408, <<"Request Timeout">>, <<"Request timeout">>})
    end.

%% Returns the next part of a request as OTP parses it, or closed or timeout.
part(active, Socket, Timer) ->
    receive
        {http, Socket, Part} -> Part;
        {tcp_closed, Socket} -> closed;
        {tcp_error, Socket, _} -> closed;
        {timeout, Timer, headers} -> timeout
    end;
part(passive, Socket, Timer) ->
    Left = case erlang:read_timer(Timer) of false -> 0; Milliseconds -> Milliseconds end,
    case gen_tcp:recv(Socket, 0, Left) of
        {ok, Part} -> Part;
        {error, timeout} -> timeout;
        {error, _} -> closed
    end.

reply(Socket, {Status, Reason, Body}) ->
    gen_tcp:send(Socket, [
        <<"HTTP/1.1 ">>, integer_to_list(Status), $\s, Reason, <<"\r\n">>,
        <<"Content-Type: text/html\r\nConnection: close\r\nContent-Length: ">>,
        integer_to_list(byte_size(Body)), <<"\r\n\r\n">>, Body
    ]),
    gen_tcp:close(Socket).
