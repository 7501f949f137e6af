# A PSGI application: a query value echoed in XML.
use strict;
use warnings;

my %escape = ( '&' => '&amp;', '<' => '&lt;', '>' => '&gt;' );

# Return the value of that name, decoded; undef if the query has none.
sub value_of {
    my ( $query, $wanted ) = @_;
    for my $pair ( split /&/, $query ) {
        my ( $name, $value ) = split /=/, $pair, 2;
        next if $name ne $wanted;
        ( $value //= '' ) =~ tr/+/ /;
        $value =~ s/%([[:xdigit:]]{2})/chr hex $1/ge;
        return $value;
    }
    return;
}

sub {
    my ($env) = @_;
    my $value = value_of( $env->{QUERY_STRING} // '', 'value' );
    my $body = '<http_test><error>no value specified</error></http_test>';
    if ( defined $value ) {
        $value =~ s/([&<>])/$escape{$1}/g;
        $body = "<http_test><value>$value</value></http_test>";
    }
    my @headers = ( 'Content-Type' => 'text/xml; charset=UTF-8', 'Content-Length' => length $body );
    return [ 200, \@headers, [$body] ];
};
