%% An appmod that answers every path with the hello page.
-module(yaws_hello).
-export([out/1]).

out(_Arg) ->
    {content, "text/html", <<"Hello, world">>}.
