%% A thin HTTP server over OTP's own packet parser: a process for each connection reads requests
%% with {packet, http_bin} and answers every GET of / on the same connection.
-module(otp_http).
-export([start/3]).

-define(IDLE_TIMEOUT_MS, 3600000).
-define(MOST_HEADERS, 100).

%% Listen on Address:Port with the given listen backlog; never returns.
start(Address, Port, Backlog) ->
    {ok, IP} = inet:parse_address(Address),
    {ok, Listener} = gen_tcp:listen(Port, [
        binary, {ip, IP}, {backlog, Backlog}, {reuseaddr, true}, {active, false},
        {nodelay, true}, {packet, http_bin}
    ]),
    accept(Listener).

accept(Listener) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            Pid = spawn(fun() -> receive start -> request(Socket) end end),
            ok = gen_tcp:controlling_process(Socket, Pid),
            Pid ! start,
            accept(Listener);
        {error, Reason} when Reason =:= econnaborted; Reason =:= emfile; Reason =:= enfile ->
            accept(Listener)
    end.

request(Socket) ->
    case gen_tcp:recv(Socket, 0, ?IDLE_TIMEOUT_MS) of
        {ok, {http_request, Method, Uri, Version}} ->
            case headers(Socket, Version >= {1, 1}, ?MOST_HEADERS) of
                {ok, KeepAlive} -> reply(Socket, route(Method, Uri), KeepAlive);
                error -> reply(Socket, {400, <<"Bad Request">>, <<"Bad request">>}, false)
            end;
        {ok, {http_error, _}} ->
            reply(Socket, {400, <<"Bad Request">>, <<"Bad request">>}, false);
        {error, _} -> gen_tcp:close(Socket)
    end.

%% Reads the rest of the request's head; returns whether the connection stays open after it.
headers(_Socket, _KeepAlive, 0) -> error;
headers(Socket, KeepAlive, Left) ->
    case gen_tcp:recv(Socket, 0, ?IDLE_TIMEOUT_MS) of
        {ok, {http_header, _, 'Connection', _, Value}} ->
            headers(Socket, stays_open(string:lowercase(Value), KeepAlive), Left - 1);
        {ok, {http_header, _, _, _, _}} -> headers(Socket, KeepAlive, Left - 1);
        {ok, http_eoh} -> {ok, KeepAlive};
        _ -> error
    end.

stays_open(<<"close">>, _) -> false;
stays_open(<<"keep-alive">>, _) -> true;
stays_open(_, KeepAlive) -> KeepAlive.

route('GET', {abs_path, <<"/">>}) -> {200, <<"OK">>, <<"Hello, world">>};
route('GET', _) -> {404, <<"Not Found">>, <<"Not found">>};
route(_, _) -> {501, <<"Not Implemented">>, <<"Not implemented">>}.

reply(Socket, {Status, Reason, Body}, KeepAlive) ->
    Sent = gen_tcp:send(Socket, [
        <<"HTTP/1.1 ">>, integer_to_binary(Status), $\s, Reason,
        <<"\r\nContent-Type: text/plain\r\nContent-Length: ">>,
        integer_to_binary(byte_size(Body)),
        case KeepAlive of
            true -> <<"\r\nConnection: keep-alive\r\n\r\n">>;
            false -> <<"\r\nConnection: close\r\n\r\n">>
        end,
        Body
    ]),
    case Sent of
        ok when KeepAlive -> request(Socket);
        _ -> gen_tcp:close(Socket)
    end.
