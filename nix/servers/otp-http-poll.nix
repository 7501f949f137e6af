{ otp28-poll, ... }: [ otp28-poll.erlang ]
