{ erlangWith, erlangLibs, ... }: [ (erlangWith [ erlangLibs.cowboy ]) ]
