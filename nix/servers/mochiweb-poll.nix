{ otp28-poll, ... }: [ (otp28-poll.erlangWith [ otp28-poll.erlangLibs.mochiweb ]) ]
