%% Misultin with a handler for each experiment.
-module(misultin_study).
-export([start/5]).

%% Listen on Address:Port; never returns. Experiment names the handler.
start(Experiment, Address, Port, Backlog, Options) ->
    Loop = case Experiment of
        "dynamic" -> fun dynamic/1;
        _ -> fun hello/1
    end,
    {ok, _} = misultin:start_link([
        {ip, Address}, {port, Port}, {backlog, Backlog}, {loop, Loop} | Options
    ]),
    receive after infinity -> ok end.

hello(Request) ->
    misultin_req:ok([{"Content-Type", "text/html"}], <<"Hello, world">>, Request).

dynamic(Request) ->
    Body = case lists:keyfind("value", 1, misultin_req:parse_qs(Request)) of
        false -> <<"<http_test><error>no value specified</error></http_test>">>;
        {_, Value} ->
            [<<"<http_test><value>">>, escape(Value), <<"</value></http_test>">>]
    end,
    misultin_req:ok([{"Content-Type", "text/xml"}], Body, Request).

escape(Text) ->
    [escape_character(C) || C <- Text].

escape_character($&) -> "&amp;";
escape_character($<) -> "&lt;";
escape_character($>) -> "&gt;";
escape_character(C) -> C.
