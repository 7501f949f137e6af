# A WebSocket echo on libev, by IO::Stream and Protocol::WebSocket.
# echo.pl ADDRESS PORT BACKLOG MECHANISM ACCEPT, where MECHANISM is epoll, poll or select, and ACCEPT
# is how many connections are accepted at each wake-up: one, or all that wait.
use strict;
use warnings;

# EV reads it when it is loaded.
BEGIN { $ENV{LIBEV_FLAGS} = { select => 1, poll => 2, epoll => 4 }->{ $ARGV[3] } }

use EV;
use IO::Socket::INET;
use IO::Stream;
use Protocol::WebSocket::Frame;
use Protocol::WebSocket::Handshake::Server;

my ( $address, $port, $backlog, undef, $accept ) = @ARGV;
# Zero is no limit.
my %unlimited = ( max_payload_size => 0, max_fragments_amount => 1e9 );

# Send one frame of a type that Protocol::WebSocket knows by name.
sub answer {
    my ( $io, $type, $payload ) = @_;
    $io->write( Protocol::WebSocket::Frame->new( %unlimited, type => $type, buffer => $payload )
          ->to_bytes );
}

# Close as soon as what is left has been sent; nothing more is read.
sub finish {
    my ($io) = @_;
    $io->{closing} = 1;
    $io->close if !length $io->{out_buf};
}

sub shake_hands {
    my ($io) = @_;
    my $handshake = $io->{handshake} //= Protocol::WebSocket::Handshake::Server->new;
    return $io->close if !$handshake->parse( $io->{in_buf} );
    return if !$handshake->is_done;
    delete $io->{handshake};
    $io->{frames} = Protocol::WebSocket::Frame->new(%unlimited);
    $io->write( $handshake->to_string );
    $io->{in_buf} = '';
}

sub echo {
    my ($io) = @_;
    my $frames = $io->{frames}->append( $io->{in_buf} );
    # To send can fail, which closes the connection.
    while ( !$io->{closing} && defined( my $payload = $frames->next_bytes ) ) {
        # Only a client's frames may be masked, and all of them must be.
        if ( !$frames->masked ) {
            answer( $io, close => pack 'n', 1002 );
            finish($io);
        }
        elsif ( $frames->is_text )   { answer( $io, text   => $payload ) }
        elsif ( $frames->is_binary ) { answer( $io, binary => $payload ) }
        elsif ( $frames->is_ping )   { answer( $io, pong   => $payload ) }
        elsif ( $frames->is_close ) {
            answer( $io, close => $payload );
            finish($io);
        }
    }
}

sub event {
    my ( $io, $event, $error ) = @_;
    if ( $error || $event & EOF || $io->{closing} && $event & SENT ) {
        $io->{closing} = 1;
        $io->close;
    }
    elsif ( $event & IN && !$io->{closing} ) {
        $io->{frames} ? echo($io) : shake_hands($io);
    }
}

my $listener = IO::Socket::INET->new(
    LocalAddr => $address,
    LocalPort => $port,
    Listen    => $backlog,
    ReuseAddr => 1,
    Blocking  => 0,
) or die "listen: $@\n";
my $accepting = EV::io $listener, EV::READ, sub {
    while ( my $socket = $listener->accept ) {
        $socket->blocking(0);
        IO::Stream->new( { fh => $socket, cb => \&event, wait_for => IN | SENT | EOF } );
        last if $accept eq 'one';
    }
};
$SIG{PIPE} = 'IGNORE';
EV::run;
