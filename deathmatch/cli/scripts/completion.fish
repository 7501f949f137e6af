# Tab completes the commands and names of deathmatch, after ./shell and after deathmatch.
function __deathmatch
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l program (string replace --regex '^~' $HOME -- $words[1])
    if test (string replace --regex '.*/' '' -- $program) = shell
        set program (string replace --regex 'shell$' bin/deathmatch -- $program)
    end
    $program complete -- $words (commandline --current-token --cut-at-cursor) 2>/dev/null
end
for command in shell deathmatch
    # Files only where there is nothing to offer.
    complete --command $command --no-files --condition '__deathmatch | count >/dev/null' \
        --arguments '(__deathmatch)'
end
