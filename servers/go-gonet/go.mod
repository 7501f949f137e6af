module deathmatch.invalid/gonet-echo

go 1.26.0

require golang.org/x/net v0.62.0

require deathmatch.invalid/listening v0.0.0

replace deathmatch.invalid/listening => ../_go
