%% A raw TCP echo: a process for each connection sends back what it receives.
-module(otp_echo).
-export([start/3]).

%% Listen on Address:Port with the given listen backlog; never returns.
start(Address, Port, Backlog) ->
    {ok, IP} = inet:getaddr(Address, inet),
    {ok, Listener} = gen_tcp:listen(Port, [
        binary, {ip, IP}, {backlog, Backlog}, {reuseaddr, true}, {active, false}, {nodelay, true}
    ]),
    accept(Listener).

accept(Listener) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            Pid = spawn(fun() -> receive start -> echo(Socket) end end),
            ok = gen_tcp:controlling_process(Socket, Pid),
            Pid ! start,
            accept(Listener);
        {error, Reason} when Reason =:= econnaborted; Reason =:= emfile; Reason =:= enfile ->
            accept(Listener)
    end.

echo(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} ->
            case gen_tcp:send(Socket, Data) of
                ok -> echo(Socket);
                {error, _} -> gen_tcp:close(Socket)
            end;
        {error, _} -> gen_tcp:close(Socket)
    end.
