# Tab completes the commands and names of deathmatch, after ./shell and after deathmatch.
_deathmatch() {
  local program=${words[1]/#\~/$HOME}
  [[ ${program:t} == shell ]] && program=${program:h}/bin/deathmatch
  local -a found described keys
  found=("${(@f)$("$program" complete -- "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  found=(${found:#})
  (( $#found )) || { _files; return }
  # The value of a key follows at once.
  keys=(${(M)${found%%$'\t'*}:#*=})
  (( $#keys )) && { compadd -S '' -a keys; return }
  described=(${${found//:/\\:}/$'\t'/:})
  _describe -t names deathmatch described
}
compdef _deathmatch shell deathmatch
