# Starman, as its own program starts it; Perl's path is all that it takes.
# serve.pl APPLICATION ADDRESS PORT BACKLOG PROCESSES
use strict;
use warnings;

use Plack::Runner;

my ( $application, $address, $port, $backlog, $processes ) = @ARGV;
my $runner = Plack::Runner->new( server => 'Starman', env => 'deployment' );
my %options = ( listen => "$address:$port", backlog => $backlog, workers => $processes );
$options{'max-requests'} = 1_000_000;
$runner->parse_options( map( { ( "--$_" => $options{$_} ) } sort keys %options ), $application );
$runner->run;
