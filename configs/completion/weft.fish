# SPDX-License-Identifier: Apache-2.0
# Completion of weft(1) for fish: the program knows its own words.
function __weft_complete
	set -l words (commandline -opc) (commandline -ct)
	for word in ($words[1] complete $words[2..] 2>/dev/null)
		if test "$word" = @file
			__fish_complete_path (commandline -ct)
		else if test -n "$word"
			echo $word
		end
	end
end
complete -c weft -f -a '(__weft_complete)'
