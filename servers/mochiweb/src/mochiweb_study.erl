%% MochiWeb with a handler for each experiment.
-module(mochiweb_study).
-export([start/7, dynamic/1, strings/1, static/2]).

%% Listen on Address:Port; never returns. Experiment is dynamic or static; Configuration, a string,
%% is strings where the dynamic page is to be made of them.
start(Experiment, Configuration, Address, Port, Backlog, Options, Folder) ->
    Loop = case Experiment of
        dynamic when Configuration =:= "strings" -> fun ?MODULE:strings/1;
        dynamic -> fun ?MODULE:dynamic/1;
        static -> fun(Request) -> ?MODULE:static(Request, Folder) end
    end,
    {ok, _} = mochiweb_http:start([
        {ip, Address}, {port, Port}, {backlog, Backlog}, {loop, Loop} | Options
    ]),
    receive after infinity -> ok end.

dynamic(Request) ->
    Body = case lists:keyfind("value", 1, mochiweb_request:parse_qs(Request)) of
        false -> <<"<http_test><error>no value specified</error></http_test>">>;
        {_, Value} ->
            [<<"<http_test><value>">>, mochiweb_html:escape(Value), <<"</value></http_test>">>]
    end,
    mochiweb_request:ok({"text/xml", Body}, Request).

%% The same page of strings, which are lists of integers, joined into one.
strings(Request) ->
    Body = case lists:keyfind("value", 1, mochiweb_request:parse_qs(Request)) of
        false -> "<http_test><error>no value specified</error></http_test>";
        {_, Value} ->
            "<http_test><value>" ++ lists:flatmap(fun escape/1, Value) ++ "</value></http_test>"
    end,
    mochiweb_request:ok({"text/xml", Body}, Request).

escape($&) -> "&amp;";
escape($<) -> "&lt;";
escape($>) -> "&gt;";
escape(Character) -> [Character].

static(Request, Folder) ->
    "/" ++ Path = mochiweb_request:get(path, Request),
    mochiweb_request:serve_file(Path, Folder, Request).
