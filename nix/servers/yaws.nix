{ erlangWith, erlangLibs, ... }: [ (erlangWith [ erlangLibs.yaws ]) ]
