# Completion of weft(1) for bash: the program knows its own words.
_weft() {
	local IFS=$'\n' word
	COMPREPLY=()
	while read -r word; do
		if [[ $word == @file ]]; then
			compopt -o filenames
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
				compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
		else
			COMPREPLY+=("$word")
		fi
	done < <("${COMP_WORDS[0]}" complete \
		"${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _weft weft
