{ otp28-nojit, ... }: [ otp28-nojit.erlang ]
