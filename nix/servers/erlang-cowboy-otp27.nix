{ otp27, ... }: [ (otp27.erlangWith [ otp27.erlangLibs.cowboy ]) ]
