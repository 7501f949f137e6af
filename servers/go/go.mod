module deathmatch.invalid/go-server

go 1.25

require deathmatch.invalid/listening v0.0.0

replace deathmatch.invalid/listening => ../_go
