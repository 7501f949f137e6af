{ otp27, ... }: [ otp27.erlang ]
