module deathmatch.invalid/listening

go 1.25
