# Feersum with the backlog that is asked for; its own runner always listens with SOMAXCONN.
# serve.pl APPLICATION ADDRESS PORT BACKLOG WORKERS
use strict;
use warnings;

use EV;
use Feersum;
use IO::Socket::INET;

my ( $application, $address, $port, $backlog, $workers ) = @ARGV;
my $handler = do $application or die "$application: ", $@ || $!, "\n";
my $listener = IO::Socket::INET->new(
    LocalAddr => $address,
    LocalPort => $port,
    Listen    => $backlog,
    ReuseAddr => 1,
    Blocking  => 0,
) or die "listen: $@\n";

# Processes share the listening socket, as those of Feersum's runner do.
for ( 2 .. $workers ) {
    last if !( fork // die "fork: $!\n" );
}
EV::default_loop->loop_fork;
my $server = Feersum->endjinn;
$server->use_socket($listener);
$server->set_keepalive(1);
$server->psgi_request_handler($handler);
EV::run;
