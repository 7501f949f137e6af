%% An appmod that answers with the value of the query in XML.
-module(yaws_dynamic).
-export([out/1]).

out(Arg) ->
    Body = case yaws_api:queryvar(Arg, "value") of
        undefined -> <<"<http_test><error>no value specified</error></http_test>">>;
        {ok, Value} ->
            [<<"<http_test><value>">>, yaws_api:htmlize(value(Value)), <<"</value></http_test>">>]
    end,
    {content, "text/xml", Body}.

%% A name without a value.
value(undefined) -> "";
value(Value) -> Value.
