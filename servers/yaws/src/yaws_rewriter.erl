%% An arg rewriter such as a production site has: Yaws calls it for every request before it looks
%% for who answers. This one takes the language from the first part of the path or from a cookie,
%% strips it from the path, and hands it on. The post names its author's rewriter, but not what
%% it did.
-module(yaws_rewriter).
-export([arg_rewrite/1]).
-include_lib("yaws/include/yaws_api.hrl").

-define(LANGUAGES, ["en", "de", "ru"]).

arg_rewrite(Arg) ->
    Request = Arg#arg.req,
    {abs_path, Path} = Request#http_request.path,
    {Language, Rest} = language(Path, Arg#arg.headers),
    Arg#arg{
        req = Request#http_request{path = {abs_path, Rest}},
        state = [{language, Language}, {original_path, Path}]
    }.

language("/" ++ Rest = Path, Headers) ->
    case lists:splitwith(fun(Character) -> Character =/= $/ end, Rest) of
        {First, "/" ++ _ = Below} ->
            case lists:member(First, ?LANGUAGES) of
                true -> {First, Below};
                false -> {preferred(Headers), Path}
            end;
        _ -> {preferred(Headers), Path}
    end.

preferred(Headers) ->
    case yaws_api:find_cookie_val("language", Headers#headers.cookie) of
        [] -> hd(?LANGUAGES);
        Language -> Language
    end.
