{ otp23, ... }: [ otp23.erlang ]
