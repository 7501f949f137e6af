module deathmatch.invalid/coder-echo

go 1.26.0

require github.com/coder/websocket v1.8.15

require deathmatch.invalid/listening v0.0.0

replace deathmatch.invalid/listening => ../_go
