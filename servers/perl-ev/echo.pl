# A query value echoed in XML, or a page that says hello, by hand on libev.
# echo.pl EXPERIMENT ADDRESS PORT BACKLOG MECHANISM, where EXPERIMENT is dynamic for the echo, any
# other for the page, and MECHANISM is epoll, poll, select or io_uring.
use strict;
use warnings;

# EV reads it when it is loaded.
BEGIN { $ENV{LIBEV_FLAGS} = { select => 1, poll => 2, epoll => 4, io_uring => 128 }->{ $ARGV[4] } }

use EV;
use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use IO::Socket::INET;

my ( $experiment, $address, $port, $backlog ) = @ARGV;
my $longest_head = 65536;
my %escape       = ( '&' => '&amp;', '<' => '&lt;', '>' => '&gt;' );
my %connections;

# Return the body for a request's target.
sub answer {
    my ($target) = @_;
    return 'Hello, world' if $experiment ne 'dynamic';
    my ( undef, $query ) = split /\?/, $target, 2;
    for my $pair ( split /&/, $query // '' ) {
        my ( $name, $value ) = split /=/, $pair, 2;
        next if $name ne 'value';
        ( $value //= '' ) =~ tr/+/ /;
        $value =~ s/%([[:xdigit:]]{2})/chr hex $1/ge;
        $value =~ s/([&<>])/$escape{$1}/g;
        return "<http_test><value>$value</value></http_test>";
    }
    return '<http_test><error>no value specified</error></http_test>';
}

# Two patterns for what the experiments need of a head, not a parser: a malformed field passes, and
# so does a body. It is an instrument of Perl and libev; servers/feersum parses in earnest.
# Return the reply to one request and whether the connection ends with it.
sub reply {
    my ($head) = @_;
    my ( $target, $minor ) = $head =~ m{\AGET (/\S*) HTTP/1\.([01])\r\n}
      or return ( "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 1 );
    my ($wish) = $head =~ /^Connection:[ \t]*([^\r\n]*?)[ \t]*\r$/mi;
    my $last = lc( $wish // ( $minor ? 'keep-alive' : 'close' ) ) ne 'keep-alive';
    my $body = answer($target);
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=UTF-8\r\n"
          . 'Content-Length: ' . length($body) . "\r\n"
          . 'Connection: ' . ( $last ? 'close' : 'keep-alive' ) . "\r\n\r\n$body",
        $last
    );
}

sub finish {
    my ($connection) = @_;
    delete $connections{ fileno $connection->{socket} };
    undef $connection->{watcher};
    close $connection->{socket};
}

# Send what is left to send; wait for room only if there is none.
sub flush_out {
    my ($connection) = @_;
    while ( length $connection->{out} ) {
        my $sent = syswrite $connection->{socket}, $connection->{out};
        if ( defined $sent ) { substr $connection->{out}, 0, $sent, '' }
        elsif ( $!{EAGAIN} || $!{EWOULDBLOCK} ) { return $connection->{watcher}->events( EV::WRITE ) }
        elsif ( !$!{EINTR} ) { return finish($connection) }
    }
    return finish($connection) if $connection->{last};
    $connection->{watcher}->events(EV::READ);
}

sub read_in {
    my ($connection) = @_;
    my $got = sysread $connection->{socket}, $connection->{in}, 16384, length $connection->{in};
    return if !defined $got && ( $!{EAGAIN} || $!{EWOULDBLOCK} || $!{EINTR} );
    return finish($connection) if !$got;
    while ( !$connection->{last} && ( my $end = index $connection->{in}, "\r\n\r\n" ) >= 0 ) {
        my ( $text, $last ) = reply( substr $connection->{in}, 0, $end + 4, '' );
        $connection->{out} .= $text;
        $connection->{last} = $last;
    }
    return finish($connection) if length $connection->{in} > $longest_head;
    flush_out($connection) if length $connection->{out};
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
        my $connection = { socket => $socket, in => '', out => '', last => 0 };
        $connections{ fileno $socket } = $connection;
        $connection->{watcher} = EV::io $socket, EV::READ, sub {
            $_[1] & EV::WRITE ? flush_out($connection) : read_in($connection);
        };
    }
};
$SIG{PIPE} = 'IGNORE';
EV::run;
