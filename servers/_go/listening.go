// Package listening makes a listener with a backlog of one's own choice.
package listening

import (
	"errors"
	"net"
	"syscall"
)

// TCP listens at an address.
//
// net takes the kernel's greatest backlog and no other; Linux lets a second listen(2) change it.
func TCP(address string, backlog int) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) })
	return listener, errors.Join(err, failed)
}
