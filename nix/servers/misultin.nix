{ erlangWith, erlangLibs, ... }: [ (erlangWith [ erlangLibs.misultin ]) ]
