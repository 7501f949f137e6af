{ erlang, ... }: [ erlang ]
