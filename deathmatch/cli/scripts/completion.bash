# Tab completes the commands and names of deathmatch, after ./shell and after deathmatch.
_deathmatch() {
  local typed=${COMP_LINE:0:COMP_POINT} words program current kept='' word
  read -ra words <<<"$typed"
  [[ $typed == *[[:space:]] ]] && words+=('')
  program=${words[0]/#\~/$HOME}
  [[ ${program##*/} == shell ]] && program=${program%shell}bin/deathmatch
  current=${words[-1]}
  # bash replaces only what follows the last of these.
  [[ $COMP_WORDBREAKS == *=* ]] && kept=${current%"${current##*=}"}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    COMPREPLY+=("${word#"$kept"}")
  done < <("$program" complete -- "${words[@]}" 2>/dev/null)
  # The value follows at once.
  if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _deathmatch shell deathmatch
