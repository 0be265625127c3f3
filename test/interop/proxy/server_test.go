// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const anySize = 1 << 30

// rawCodec passes messages as the bytes they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

var _ encoding.Codec = rawCodec{}

// pattern is `size` bytes that differ from place to place, and from one `seed`
// to the next.
func pattern(seed, size int) []byte {
	bytes := make([]byte, size)
	value := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := 0; i+8 <= size; i += 8 {
		value ^= value << 13
		value ^= value >> 7
		value ^= value << 17
		binary.LittleEndian.PutUint64(bytes[i:], value)
	}
	return bytes
}

func digest(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil))[:16] }

// peer is a runtime on grpc-go that knows every service. What a method does is
// its last word.
type peer struct {
	gone atomic.Int32 // Calls of Hang whose client has gone.
}

func (p *peer) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	incoming, _ := metadata.FromIncomingContext(stream.Context())
	head := metadata.MD{}
	for name, values := range incoming {
		if strings.HasPrefix(name, "x-") {
			head[name] = values
		}
	}
	head.Set("x-seen-agent", incoming.Get("user-agent")...)
	head.Set("x-seen-authority", incoming.Get(":authority")...)
	_, deadline := stream.Context().Deadline()
	head.Set("x-seen-deadline", fmt.Sprint(deadline))
	stream.SetTrailer(metadata.MD{"x-last": incoming.Get("x-last"), "x-last-bin": []string{"\x00\xff"}})
	if err := stream.SetHeader(head); err != nil {
		return err
	}
	switch method[strings.LastIndex(method, "/")+1:] {
	case "Echo":
		return echo(stream)
	case "Collect":
		return collect(stream)
	case "Emit":
		return emit(stream)
	case "Fail":
		return fail(stream)
	case "FailLate":
		if err := emit(stream); err != nil {
			return err
		}
		return fail(stream)
	case "Early":
		// Nothing of the request was read.
		return status.Error(codes.ResourceExhausted, "not now")
	case "Hang":
		if err := stream.SendHeader(metadata.MD{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		p.gone.Add(1)
		return stream.Context().Err()
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// echo gives each message back.
func echo(stream grpc.ServerStream) error {
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

// collect answers with number and digest of all messages.
func collect(stream grpc.ServerStream) error {
	count, sum := 0, sha256.New()
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		count++
		sum.Write(message)
	}
	answer := []byte(fmt.Sprint(count, " ", digest(sum)))
	return stream.SendMsg(&answer)
}

// emit answers `COUNT SIZE` with so many patterns.
func emit(stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	var count, size int
	if _, err := fmt.Sscan(string(request), &count, &size); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	for i := 0; i < count; i++ {
		message := pattern(i, size)
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
	return nil
}

func fail(stream grpc.ServerStream) error {
	failure, err := status.New(codes.FailedPrecondition, "100% of 'gpu' — gone\n").
		WithDetails(wrapperspb.String("the first"), wrapperspb.Bytes([]byte{0, 255}))
	if err != nil {
		return err
	}
	return failure.Err()
}

// startPeer serves until the test ends, as containerd does: with no options but
// sizes.
func startPeer(t *testing.T, socket string) *peer {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(p.serve),
		grpc.MaxRecvMsgSize(anySize), grpc.MaxSendMsgSize(anySize))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return p
}
