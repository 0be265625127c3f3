// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// outcome is all that a client is told by a call.
type outcome struct {
	Answers int
	Digest  string // Of the answers, in order.
	Header  metadata.MD
	Trailer metadata.MD
	Code    codes.Code
	Message string
	Details string
}

// call is one to try on both ways.
type call struct {
	name     string
	method   string
	requests [][]byte
	metadata metadata.MD
	options  []grpc.CallOption
	// Sent and read in turns, not all sent before.
	turns bool
	// The call is given up after the first answer.
	cancel bool
	// The end comes from this side or from the other one, whichever is first:
	// how much of the answer came before is chance.
	raced bool
	// No deadline where it is 0.
	timeout time.Duration
	// The one that is expected.
	code codes.Code
}

func patterns(count, size int) [][]byte {
	var messages [][]byte
	for i := 0; i < count; i++ {
		messages = append(messages, pattern(i, size))
	}
	return messages
}

func (c call) on(t *testing.T, connection *grpc.ClientConn) outcome {
	t.Helper()
	ctx, cancel := background(t), context.CancelFunc(func() {})
	if c.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	ctx = metadata.NewOutgoingContext(ctx, c.metadata)
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := connection.NewStream(ctx, both, c.method, c.options...)
	if err != nil {
		t.Fatal(err)
	}
	sum, answers := sha256.New(), 0
	receive := func() error {
		var message []byte
		err := stream.RecvMsg(&message)
		if err == nil {
			answers++
			sum.Write(message)
		}
		return err
	}
	for _, request := range c.requests {
		// io.EOF: the answer is there already.
		if err = stream.SendMsg(&request); err != nil {
			break
		}
		if c.turns {
			if err = receive(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err = stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		if err = receive(); c.cancel {
			cancel()
		}
	}
	got := outcome{Answers: answers, Digest: digest(sum), Trailer: stream.Trailer()}
	if err != io.EOF {
		told := status.Convert(err)
		got.Code, got.Message = told.Code(), told.Message()
		got.Details = fmt.Sprint(told.Details())
	}
	if got.Header, err = stream.Header(); err != nil && got.Code == codes.OK {
		t.Fatal(err)
	}
	if c.raced {
		got = outcome{Code: got.Code}
	}
	return got
}

func (c call) String() string { return strings.ReplaceAll(c.name, " ", "_") }

func TestIsTheSameAsWithout(t *testing.T) {
	folder := t.TempDir()
	server := startPeer(t, filepath.Join(folder, "cri"))
	startProgram(t, "proxy", filepath.Join(folder, "shim"), filepath.Join(folder, "cri"))
	agent := grpc.WithUserAgent("kubelet/v1.34.2 (linux/amd64)")
	direct := dial(t, filepath.Join(folder, "cri"), agent)
	proxied := dial(t, filepath.Join(folder, "shim"), agent)
	gzip := []grpc.CallOption{grpc.UseCompressor("gzip")}
	marked := metadata.MD{
		"x-many":     {"one", "two", " with  blanks"},
		"x-some-bin": {"\x00\x01\xfe", ""},
		"x-last":     {"a trailer"},
		"x-long":     {strings.Repeat("l", 20_000)},
	}
	for _, c := range []call{
		{name: "unary", method: "/interop.Peer/Echo", requests: patterns(1, 200), metadata: marked},
		{name: "unary of nothing", method: "/interop.Peer/Echo", requests: patterns(1, 0)},
		{name: "unary of 64 MiB", method: "/interop.Peer/Echo", requests: patterns(1, 64<<20)},
		{name: "unary with a deadline", method: "/interop.Peer/Echo", requests: patterns(1, 200), timeout: patience},
		{name: "unary compressed", method: "/interop.Peer/Echo", requests: patterns(1, 100_000), options: gzip},
		{name: "client stream", method: "/interop.Peer/Collect", requests: patterns(300, 10_000)},
		{name: "client stream of 64 MiB", method: "/interop.Peer/Collect", requests: patterns(64, 1<<20)},
		{name: "client stream compressed", method: "/interop.Peer/Collect", requests: patterns(50, 5_000), options: gzip},
		{name: "server stream", method: "/interop.Peer/Emit", requests: [][]byte{[]byte("5000 300")}, metadata: marked},
		{name: "server stream of 64 MiB", method: "/interop.Peer/Emit", requests: [][]byte{[]byte("64 1048576")}},
		{name: "server stream of none", method: "/interop.Peer/Emit", requests: [][]byte{[]byte("0 0")}},
		{name: "bidi stream in turns", method: "/interop.Peer/Echo", requests: patterns(500, 700), turns: true, metadata: marked},
		{name: "bidi stream compressed", method: "/interop.Peer/Echo", requests: patterns(30, 7_000), turns: true, options: gzip},
		{name: "no request", method: "/interop.Peer/Collect"},
		{name: "error with details", method: "/interop.Peer/Fail", requests: patterns(1, 10), metadata: marked, code: codes.FailedPrecondition},
		{name: "error after answers", method: "/interop.Peer/FailLate", requests: [][]byte{[]byte("40 100000")}, code: codes.FailedPrecondition},
		{name: "error before the request is read", method: "/interop.Peer/Early", requests: patterns(2, 50), code: codes.ResourceExhausted},
		{name: "unknown method", method: "/interop.Peer/Unknown", requests: patterns(1, 10), code: codes.Unimplemented},
		{name: "cancel", method: "/interop.Peer/Emit", requests: [][]byte{[]byte("100000 1000")}, cancel: true, raced: true, code: codes.Canceled},
		{name: "deadline", method: "/interop.Peer/Hang", requests: patterns(1, 10), timeout: time.Second, raced: true, code: codes.DeadlineExceeded},
	} {
		t.Run(c.String(), func(t *testing.T) {
			want, got := c.on(t, direct), c.on(t, proxied)
			if want.Code != c.code {
				t.Errorf("without the proxy: %+v", want)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v\nis not what is told without the proxy:\n%+v", got, want)
			}
		})
	}
	t.Run("the runtime hears who gives up", func(t *testing.T) {
		for end := time.Now().Add(patience); server.gone.Load() != 2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d of 2 calls are over", server.gone.Load())
			}
		}
	})
}

// What grpc-go sends comes to a runtime on nghttp2 as if sent to it.
func TestRuntimesThatAreNotGo(t *testing.T) {
	folder := t.TempDir()
	startProgram(t, "record", filepath.Join(folder, "cri"))
	startProgram(t, "proxy", filepath.Join(folder, "shim"), filepath.Join(folder, "cri"))
	type told struct {
		answer          string
		header, trailer metadata.MD
	}
	tell := func(t *testing.T, way string, size int, options ...grpc.CallOption) told {
		ctx := metadata.AppendToOutgoingContext(background(t), "x-mine", "a", "x-mine", "b", "x-mine-bin", "\xff")
		var got told
		request, answer := pattern(1, size), []byte{}
		options = append(options, grpc.Header(&got.header), grpc.Trailer(&got.trailer))
		if err := dial(t, filepath.Join(folder, way)).Invoke(ctx, "/runtime.v1.RuntimeService/Version", &request, &answer, options...); err != nil {
			t.Fatal(err)
		}
		got.answer = string(answer)
		return got
	}
	for name, options := range map[string][]grpc.CallOption{"plain": nil, "compressed": {grpc.UseCompressor("gzip")}} {
		for _, size := range []int{0, 200, 5 << 20} {
			t.Run(fmt.Sprintf("%s_%d", name, size), func(t *testing.T) {
				want, got := tell(t, "cri", size, options...), tell(t, "shim", size, options...)
				if !strings.Contains(want.answer, "user-agent=grpc-go/") || !strings.Contains(want.answer, "grpc-timeout=given") {
					t.Errorf("told without the proxy: %+v", want)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%+v\nis not what is told without the proxy:\n%+v", got, want)
				}
			})
		}
	}
}
