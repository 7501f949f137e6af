{ erlangWith, erlangLibs, ... }: [ (erlangWith [ erlangLibs.webmachine ]) ]
