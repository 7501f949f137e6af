{ erlangWith, erlangLibs, ... }: [ (erlangWith [ erlangLibs.mochiweb ]) ]
