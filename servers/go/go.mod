module deathmatch

go 1.25
